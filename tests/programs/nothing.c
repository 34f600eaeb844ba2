/* Does nothing: what matters is how it is linked, and its file's mode. */
int main(void)
{
	return 0;
}
