use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::*;

#[test]
fn the_journal_is_known_by_the_numbers_of_its_end() {
    let socket = FileType::Socket;
    assert_eq!(Form::of(Some("8:123"), 8, 123, socket), Form::Journal);
    // A child whose output goes elsewhere inherits the variable.
    assert_eq!(Form::of(Some("8:123"), 8, 124, socket), Form::Reader);
    assert_eq!(Form::of(Some("nonsense"), 8, 123, FileType::RegularFile), Form::File);
    assert_eq!(Form::of(None, 8, 123, FileType::Fifo), Form::Reader);
}

#[test]
fn every_line_has_its_level() {
    let two = "one\ntwo";
    assert_eq!(Form::Journal.lines(Level::WARN, two), "<4>one\n<4>two\n");
    assert_eq!(Form::Journal.lines(Level::ERROR, "x"), "<3>x\n");
    assert_eq!(Form::Reader.lines(Level::INFO, two), "note: one\nnote: two\n");
    let line = Form::File.lines(Level::WARN, "x");
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z') && rest == "warning: x\n", "{line}");
}

#[test]
fn no_name_makes_a_line_or_a_priority_of_its_own() {
    assert_eq!(Form::Journal.lines(Level::INFO, "a\x1b[2J\r<0>b"), "<6>a\\u001b[2J\\r<0>b\n");
}

/// Counts the events that reach it.
struct Counter(Arc<AtomicU32>);

impl<S: Subscriber> Layer<S> for Counter {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

// rule: notes of libraries about their own work are not the user's, their warnings are
#[test]
fn notes_of_libraries_are_left_out_unless_details_are_wanted() {
    for (level, expected) in [(LevelFilter::INFO, 2), (LevelFilter::DEBUG, 3)] {
        let told = Arc::new(AtomicU32::new(0));
        let subscriber = tracing_subscriber::registry().with(Counter(Arc::clone(&told)));
        let subscriber = subscriber.with(filter_fn(move |event| is_told(event, level)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "object_store::gcp", "fetching token from metadata server");
            tracing::warn!(target: "object_store::gcp", "something is wrong");
            tracing::info!(target: "afflux::serve", "serving");
        });
        assert_eq!(told.load(Ordering::Relaxed), expected, "{level}");
    }
}
