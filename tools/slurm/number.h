/*
 * Numbers as text.
 */
#ifndef NVTASKSET_SLURM_NUMBER_H
#define NVTASKSET_SLURM_NUMBER_H

/* Decimal digits and nothing else, from `least` to `most`. -1 if the text is not that. */
int number_parse(unsigned int *number, const char *text, unsigned int least, unsigned int most);

#endif
