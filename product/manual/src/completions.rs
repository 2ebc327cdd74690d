//! Completions for a shell.
//!
//! Owns: what clap's scripts lack: the values of arguments without a flag in fish, and the names of block devices.
//! Does not own: the scripts (clap), the description.
//! Invariants: devices are listed when the user asks for a completion, not when the script is made.

use clap::{Arg, Command};
use clap_complete::Shell;

/// The name of a value that is a block device.
pub const DEVICE: &str = "DEVICE";

/// The directory whose names are those of the block devices.
const DEVICES: &str = "/sys/class/block";

/// The script for a shell.
pub(crate) fn script(mut described: Command, shell: Shell) -> String {
    let name = described.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut described, &name, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => with_devices_of_bash(script, &described),
        Shell::Zsh => with_devices_of_zsh(&script, &described),
        Shell::Fish => script + &values_of_fish(&described),
        _ => script,
    }
}

fn is_device(argument: &Arg) -> bool {
    argument.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == DEVICE))
}

/// In bash the words of a subcommand, and the values of a flag, are lists in the script.
fn with_devices_of_bash(mut script: String, described: &Command) -> String {
    let devices = format!("$(ls {DEVICES} 2>/dev/null)");
    for below in described.get_subcommands() {
        let head = format!("{}__subcmd__{})\n            opts=\"", described.get_name(), below.get_name());
        let Some((before, after)) = script.split_once(&head) else { continue };
        let (own, others) = after.split_once("\n            ;;\n").unwrap_or((after, ""));
        let mut own = own.to_owned();
        for argument in below.get_arguments().filter(|argument| is_device(argument)) {
            match argument.get_long() {
                None => own.insert_str(0, &format!("{devices} ")),
                Some(flag) => {
                    let files = format!("--{flag})\n                    COMPREPLY=($(compgen -f \"${{cur}}\"))");
                    let names = format!(
                        "--{flag})\n                    COMPREPLY=($(compgen -W \"{devices}\" -- \"${{cur}}\"))"
                    );
                    own = own.replace(&files, &names);
                }
            }
        }
        script = format!("{before}{head}{own}\n            ;;\n{others}");
    }
    script
}

/// In zsh a value ends with the action that completes it.
fn with_devices_of_zsh(script: &str, described: &Command) -> String {
    let positionals = described.get_subcommands().flat_map(Command::get_positionals);
    let heads: Vec<String> = positionals
        .filter(|argument| is_device(argument))
        .map(|argument| format!("':{} -- ", argument.get_id()))
        .collect();
    let of_flag = format!(":{DEVICE}");
    let line = |line: &str| match line.strip_suffix(":_default' \\") {
        Some(start) if start.ends_with(&of_flag) || heads.iter().any(|head| start.starts_with(head)) => {
            format!("{start}:_files -W {DEVICES}' \\\n")
        }
        _ => format!("{line}\n"),
    };
    script.lines().map(line).collect()
}

/// In fish each value is a command of its own.
fn values_of_fish(described: &Command) -> String {
    let name = described.get_name();
    let function = format!("__fish_{}_using_subcommand", name.replace('-', "_"));
    let of_argument = |below: &Command, argument: &Arg| {
        let values = match is_device(argument) {
            true => format!("(ls {DEVICES})"),
            false if argument.is_positional() => {
                let values = argument.get_possible_values();
                values.iter().map(|value| value.get_name()).collect::<Vec<_>>().join(" ")
            }
            false => String::new(),
        };
        let flag = argument.get_long().map(|flag| format!(" -l {flag} -r")).unwrap_or_default();
        let below = below.get_name();
        (!values.is_empty()).then(|| format!("complete -c {name} -n \"{function} {below}\"{flag} -f -a \"{values}\"\n"))
    };
    let shown = described.get_subcommands().filter(|below| !below.is_hide_set());
    shown.flat_map(|below| below.get_arguments().filter_map(move |argument| of_argument(below, argument))).collect()
}
