# The soak test must be able to fail.
# needs: tests/gpu/soak

load helpers

@test "a launch in a thousand that escapes is noticed" {
	# It ends as soon as it notices.
	SIM_FAULTS=lost-launches SOAK_SECONDS=60 run ! nv all "$BUILD/tests/gpu/soak"
	[[ $output == *"outside what the revisions"* ]]
}
