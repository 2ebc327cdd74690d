use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use super::{CONNECTIONS_MAX, Responder, start};
use crate::control::messages::{ControlReply, ControlRequest, Drained, LINE_BYTES_MAX, Progress};

/// Answers a drain with two reports and the end, and a set with the values of the request.
struct Echo;

impl Responder for Echo {
    fn respond(&self, request: ControlRequest, send: &mut dyn FnMut(ControlReply) -> io::Result<()>) -> io::Result<()> {
        match request {
            ControlRequest::Drain => {
                send(ControlReply::Progress(Progress::default()))?;
                send(ControlReply::Progress(Progress::default()))?;
                send(ControlReply::Drained(Drained::default()))
            }
            ControlRequest::Set { assignments, device } => assignments.into_iter().try_for_each(|knob| {
                send(ControlReply::Set {
                    knob,
                    unit: String::new(),
                    value: 1,
                    device: device.clone(),
                    in_force: Vec::new(),
                })
            }),
            ControlRequest::Stat
            | ControlRequest::Clients { .. }
            | ControlRequest::Delays
            | ControlRequest::Files
            | ControlRequest::Record { .. }
            | ControlRequest::Trace { .. }
            | ControlRequest::Unlock { .. } => Err(io::Error::other("no report")),
        }
    }
}

struct Scratch(afflux_scratch::Scratch);

impl Scratch {
    fn listening(name: &str) -> Self {
        let made = Self(afflux_scratch::Scratch::new(&std::env::temp_dir(), name).unwrap());
        start(UnixListener::bind(made.socket()).unwrap(), Arc::new(Echo)).unwrap();
        made
    }

    fn socket(&self) -> std::path::PathBuf {
        self.0.path().join("socket")
    }

    fn connect(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(self.socket()).unwrap())
    }
}

fn line(stream: &mut BufReader<UnixStream>) -> Option<ControlReply> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).unwrap_or(0);
    (read > 0).then(|| serde_json::from_str(&line).unwrap())
}

#[test]
fn requests_are_answered_in_order_on_one_connection() {
    let scratch = Scratch::listening("order");
    let mut stream = scratch.connect();
    stream
        .get_mut()
        .write_all(b"{\"do\":\"drain\"}\n{\"do\":\"set\",\"assignments\":[\"a=1\"],\"device\":\"d\"}\n")
        .unwrap();
    assert!(matches!(line(&mut stream), Some(ControlReply::Progress(_))));
    assert!(matches!(line(&mut stream), Some(ControlReply::Progress(_))));
    assert!(matches!(line(&mut stream), Some(ControlReply::Drained(_))));
    let Some(ControlReply::Set { knob, device, .. }) = line(&mut stream) else { panic!("no answer") };
    assert_eq!((knob.as_str(), device.as_deref()), ("a=1", Some("d")));
}

#[test]
fn nonsense_is_refused_and_the_server_goes_on() {
    let scratch = Scratch::listening("nonsense");
    let mut stream = scratch.connect();
    for text in ["\n", "null\n", "{\"do\":\"explode\"}\n", "{\"do\":\"set\"}\n", "\u{0}\n"] {
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        assert!(matches!(line(&mut stream), Some(ControlReply::Refused { .. })), "{text:?}");
    }
    stream.get_mut().write_all(b"{\"do\":\"drain\"}\n").unwrap();
    assert!(matches!(line(&mut stream), Some(ControlReply::Progress(_))));
}

#[test]
fn a_line_without_end_is_refused() {
    let scratch = Scratch::listening("endless");
    let mut stream = scratch.connect();
    let mut output = stream.get_ref().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let piece = vec![b' '; 1 << 16];
        for _ in 0..=LINE_BYTES_MAX >> 16 {
            if output.write_all(&piece).is_err() {
                return;
            }
        }
    });
    let Some(ControlReply::Refused { reason, .. }) = line(&mut stream) else { panic!("not refused") };
    assert!(reason.contains("longer than"), "{reason}");
    writer.join().unwrap();
}

#[test]
fn connections_are_bounded_and_places_come_back() {
    let scratch = Scratch::listening("bounded");
    let mut open: Vec<_> = (0..CONNECTIONS_MAX).map(|_| scratch.connect()).collect();
    for stream in &mut open {
        stream.get_mut().write_all(b"{}\n").unwrap();
        assert!(line(stream).is_some());
    }
    let mut over = scratch.connect();
    let Some(ControlReply::Refused { reason, .. }) = line(&mut over) else { panic!("not refused") };
    assert!(reason.contains("are open already"), "{reason}");
    assert!(line(&mut over).is_none(), "the refused connection is closed");
}
