# prove's harness, which also says, before the summary, how many tests were skipped and why.
package TellSkips;

use strict;
use warnings;
use parent 'TAP::Harness';

my %skipped;    # how many, by reason

sub make_parser {
	my ($self, @job) = @_;
	my ($parser, $session) = $self->SUPER::make_parser(@job);

	$parser->callback(test => sub { $skipped{$_[0]->explanation}++ if $_[0]->has_skip });
	return ($parser, $session);
}

# The most frequent first.
sub summary {
	my ($self, @results) = @_;
	my $count = 0;

	$count += $_ for values %skipped;
	print "Tests skipped: $count\n";
	printf "%6d %s\n", $skipped{$_}, $_ for sort { $skipped{$b} <=> $skipped{$a} || $a cmp $b } keys %skipped;
	$self->SUPER::summary(@results);
}

1;
