/* Does nothing: tests need only the way it is linked, and its file's mode. */
int main(void)
{
	return 0;
}
