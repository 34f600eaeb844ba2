/* srun, sbatch and salloc: the options, and nothing else. */
#include "contexts.h"

#include "options.h"

/* An error in plugstack.conf must not keep users from submitting: the node says it. */
int srun_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	return options_register(spank);
}
