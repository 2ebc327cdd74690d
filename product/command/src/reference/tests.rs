use super::{commands, is_fresh};

/// The commands of volumes exist with stores alone.
#[cfg(feature = "object")]
#[test]
fn the_page_of_commands_is_what_the_command_tells_of_itself() {
    is_fresh("docs/reference/commands.md", &commands());
}
