/* What startup_bench compares programs with: the C library, and no work. */
int main(void)
{
	return 0;
}
