use clap::{Arg, Command};

use super::*;

const HELP: &str = "\
Examples:
  tool copy a b

Copies one file, and says so in a line that is much longer than any terminal.

Knobs:
  speed  1 to 9
      How fast it is.
  depth  1 to 2
      How deep it is.";

#[test]
fn a_page_has_the_help_with_examples_as_they_stand_and_lists_as_paragraphs() {
    let mut described = Command::new("tool").subcommand(
        Command::new("copy").about("Copy a file").arg(Arg::new("fast").long("fast").help("Hurry")).after_help(HELP),
    );
    described.build();
    let copy = described.find_subcommand("copy").unwrap();
    let text = String::from_utf8(page(copy, "tool-copy").unwrap()).unwrap();
    for part in
        [".SH EXAMPLES\n.nf\n  tool copy a b\n", ".fi\n", ".SH KNOBS\n.TP\n\\fBspeed", "\nHow fast it is.\n.TP\n"]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(text.contains("Hurry") && text.contains("tool\\-copy") && text.contains("SEE ALSO"), "{text}");
}
