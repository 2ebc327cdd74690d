use super::*;

fn without_help(command: &clap::Command) -> Vec<String> {
    let named = |arg: &clap::Arg| format!("{} {}", command.get_name(), arg.get_id());
    let of_command = command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_help().is_none()).map(named);
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    of_command.chain(shown.flat_map(without_help)).collect()
}

#[test]
fn each_argument_of_each_command_has_a_help() {
    assert_eq!(without_help(&CommandLine::described()), Vec::<String>::new());
}
