# prove's harness, which also says, before the summary, how many tests were skipped and why, and writes the names of those that
# failed to the file FAILED, if the environment names one. If it has LOOK_AT_NONE, names of tests, these run first, beside each other,
# and all others one at a time.
package Harness;

use strict;
use warnings;
use parent 'TAP::Harness';

my %skipped;    # how many, by reason

sub new {
	my $self = shift->SUPER::new(@_);
	my @names = split ' ', $ENV{LOOK_AT_NONE} // '';

	$self->rules({seq => [{par => \@names}, {seq => '**'}]}) if @names;
	return $self;
}

sub make_parser {
	my ($self, @job) = @_;
	my ($parser, $session) = $self->SUPER::make_parser(@job);

	$parser->callback(test => sub { $skipped{$_[0]->explanation}++ if $_[0]->has_skip });
	return ($parser, $session);
}

sub write_failed {
	my ($results) = @_;
	my %failed = map { $_ => 1 } $results->failed, $results->parse_errors, $results->exit, $results->wait;

	open my $file, '>', $ENV{FAILED} or die "$ENV{FAILED}: $!\n";
	print $file map { "$_\n" } sort keys %failed;
	close $file or die "$ENV{FAILED}: $!\n";
}

# The most frequent first.
sub summary {
	my ($self, @results) = @_;
	my $count = 0;

	$count += $_ for values %skipped;
	print "Tests skipped: $count\n";
	printf "%6d %s\n", $skipped{$_}, $_ for sort { $skipped{$b} <=> $skipped{$a} || $a cmp $b } keys %skipped;
	write_failed($results[0]) if $ENV{FAILED};
	$self->SUPER::summary(@results);
}

1;
