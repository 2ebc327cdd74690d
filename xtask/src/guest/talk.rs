//! The lines that a guest says.
//!
//! Owns: their meaning.
//! Does not own: the way from guest to host (`machine`), the guest's half (`tests/guest/run`).
//! Invariants: a line that is no order is text of the running case.

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A case begins.
    Case(String),
    /// The running case ended with this code.
    End(i32),
    /// A command for the monitor of the emulated machine.
    Monitor(String),
    /// A word for the server on this host.
    Server(String),
    /// The server in the guest answers the client on this host.
    Load(String),
    /// The machine is to be reset.
    Reset,
    /// All cases have ended.
    All,
    Text(String),
}

pub(super) fn event(line: &str) -> Event {
    let line = line.trim_end_matches(['\r', '\n']);
    order(line).unwrap_or_else(|| Event::Text(line.to_owned()))
}

fn order(line: &str) -> Option<Event> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match (word, rest.split_once(' ')) {
        ("@case", None) => Some(Event::Case(rest.to_owned())),
        ("@end", Some((_, code))) => code.parse().ok().map(Event::End),
        ("@host", Some(("monitor", command))) => Some(Event::Monitor(command.to_owned())),
        ("@host", Some(("server", word))) => Some(Event::Server(word.to_owned())),
        ("@host", Some(("load", words))) => Some(Event::Load(words.to_owned())),
        ("@reset", None) => Some(Event::Reset),
        ("@all", None) => Some(Event::All),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
