//! The log of the commands that stay running, with levels.
//!
//! Under systemd a line begins with its priority (`<4>`), which the journal removes. This works whatever the unit says,
//! without a library and without a second connection to the journal. On a terminal, and for a reader with a clock of
//! its own (a pipe), a line begins with the word for its level; in a file also with the time.
//!
//! Owns: the forms, the choice for standard error, the levels by name.
//! Does not own: the messages; answers to users' requests, which are no log (`output`).
//! Invariants: an event is one or more whole lines. As in `output`, no name that strangers chose controls a terminal,
//! and a reader that is gone is no error.

use std::env;
use std::fmt::{self, Write as _};
use std::io;

use rustix::fs::{FileType, fstat};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use afflux_report::failure::Failure;
use afflux_report::output;

/// The levels, by the names that `--log` takes.
pub(crate) const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// With the journal's priorities.
    Journal,
    /// With the time.
    File,
    /// For a terminal, or a reader with its own clock.
    Reader,
}

impl Form {
    /// The form that suits standard error.
    fn of_stderr() -> Self {
        let Ok(stderr) = fstat(io::stderr()) else { return Self::Reader };
        let kind = FileType::from_raw_mode(stderr.st_mode);
        Self::of(env::var("JOURNAL_STREAM").ok().as_deref(), stderr.st_dev, stderr.st_ino, kind)
    }

    /// `stream` holds the device and inode numbers of the journal's end, from systemd. A child whose output goes
    /// elsewhere inherits the variable.
    fn of(stream: Option<&str>, device: u64, inode: u64, kind: FileType) -> Self {
        match stream {
            Some(stream) if stream == format!("{device}:{inode}") => Self::Journal,
            _ if kind == FileType::RegularFile => Self::File,
            _ => Self::Reader,
        }
    }

    /// The text before each line of an event.
    fn begins(self, level: Level) -> String {
        let (priority, word) = match level {
            Level::ERROR => (3, "error"),
            Level::WARN => (4, "warning"),
            Level::INFO => (6, "note"),
            Level::DEBUG => (7, "debug"),
            Level::TRACE => (7, "trace"),
        };
        match self {
            Self::Journal => format!("<{priority}>"),
            Self::Reader => format!("{word}: "),
            Self::File => {
                let mut time = String::new();
                // A failure to format the time does not suppress the event.
                let _ = SystemTime.format_time(&mut Writer::new(&mut time));
                format!("{time} {word}: ")
            }
        }
    }

    fn lines(self, level: Level, text: &str) -> String {
        let begins = self.begins(level);
        output::harmless(text, &[]).lines().map(|line| format!("{begins}{line}\n")).collect()
    }
}

/// From now on, events of at least this severity go to standard error.
pub(crate) fn start(level: LevelFilter) {
    // A reader that is gone is no error.
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).log_internal_errors(false);
    let subscriber = subscriber.event_format(Form::of_stderr()).finish();
    // An error means that a subscriber is already set, which does no harm.
    let _ = tracing::subscriber::set_global_default(subscriber.with(filter_fn(move |event| is_told(event, level))));
}

/// Whether an event is for the user: libraries note the steps of their work, which only a reader of details wants.
fn is_told(event: &Metadata<'_>, level: LevelFilter) -> bool {
    event.target().starts_with("afflux") || *event.level() <= Level::WARN || level > LevelFilter::INFO
}

/// Prints why the command failed; no level suppresses this.
pub(crate) fn failed(failure: &Failure) {
    match Form::of_stderr() {
        Form::Journal => output::remark(Form::Journal.lines(Level::ERROR, &failure.to_string()).trim_end()),
        Form::File | Form::Reader => output::remark(format_args!("error: {failure}")),
    }
}

impl<S, N> FormatEvent<S, N> for Form
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut message = Message::default();
        event.record(&mut message);
        writer.write_str(&self.lines(*event.metadata().level(), &message.0))
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests;
