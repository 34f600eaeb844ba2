#include "descriptor.h"

int descriptor_lowest(uint64_t table, int usual)
{
	return table >= DESCRIPTOR_TABLE_MIN && table <= (uint64_t)usual ? (int)table - DESCRIPTOR_TABLE_END : usual;
}
