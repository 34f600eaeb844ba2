#include "mapping.h"

#include <stdio.h>
#include <sys/mman.h>

bool mapping_parse(struct mapping *mapping, const char *line)
{
	unsigned long start, end, offset, inode;
	char rights[5];
	int path = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %lu %n", &start, &end, rights, &offset, &inode, &path) != 5)
		return false;
	*mapping = (struct mapping){
		.start = start,
		.end = end,
		.protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
		              (rights[2] == 'x' ? PROT_EXEC : 0),
		.offset = offset,
		.inode = inode,
		.path = line + path,
	};
	return true;
}
