use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::*;

/// A server that answers every call with the result of `answer` for its number, procedure and arguments.
fn serve(answer: impl Fn(u32, u32, &[u8]) -> Vec<u8> + Send + 'static) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        while let Some(call) = next_record(&mut socket) {
            let word = |at: usize| u32::from_be_bytes(call[at..at + 4].try_into().unwrap());
            let credential = word(28) as usize;
            let arguments = &call[24 + 8 + credential + 8..];
            let reply = answer(word(0), word(20), arguments);
            let mark = (reply.len() as u32 | 1 << 31).to_be_bytes();
            socket.write_all(&[&mark, &reply[..]].concat()).unwrap();
        }
    });
    address
}

fn next_record(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let mut mark = [0; 4];
    socket.read_exact(&mut mark).ok()?;
    let mut record = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
    socket.read_exact(&mut record).ok()?;
    Some(record)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn accepted(xid: u32, results: &[u8]) -> Vec<u8> {
    [words(&[xid, 1, 0, 0, 0, 0]), results.to_vec()].concat()
}

#[test]
fn calls_and_reads_results() {
    let address = serve(|xid, procedure, arguments| match procedure {
        0 => accepted(xid, &[]),
        1 => accepted(xid, &words(&[70])),
        21 => {
            assert_eq!(arguments, b"\0\0\0\x04hand\0\0\0\0\0\0\x10\0\0\0\0\0");
            accepted(xid, &words(&[0, 0, 0, 0x0102_0304, 0x0506_0708]))
        }
        other => panic!("{other}"),
    });
    let mut client = Client::connect(address).unwrap();
    client.null().unwrap();
    assert_eq!(client.getattr(b"hand").unwrap_err().status(), Some(70));
    let committed = client.commit(b"hand", 4096, 0).unwrap();
    assert_eq!(committed.verf.0, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(committed.file_wcc.before.is_none() && committed.file_wcc.after.is_none());
}

#[test]
fn tells_refusals_and_garbage() {
    let address = serve(|xid, procedure, _| match procedure {
        0 => words(&[xid, 1, 1, 1, 2]),
        1 => words(&[xid, 1, 0, 0, 0, 3]),
        18 => accepted(xid, &words(&[0])),
        _ => accepted(xid.wrapping_add(1), &words(&[0])),
    });
    let mut client = Client::connect(address).unwrap();
    assert!(matches!(client.null(), Err(Error::Refused { words }) if words == [1, 1, 2]));
    assert!(matches!(client.getattr(b""), Err(Error::Refused { words }) if words == [0, 3]));
    assert!(matches!(client.fsstat(b""), Err(Error::Malformed(_))));
    assert!(matches!(client.readlink(b""), Err(Error::Unasked { .. })));
}

#[test]
fn refuses_what_the_codec_lets_pass() {
    let address = serve(|xid, procedure, _| match procedure {
        // Padding that is not zero, behind a link's target of three bytes.
        5 => accepted(xid, &words(&[0, 0, 3, 0x6161_6101])),
        // A handle of 68 bytes.
        3 => accepted(xid, &words(&[&[0, 68][..], &[7; 17], &[0, 0]].concat())),
        // A count of 8 with 4 bytes of data.
        6 => accepted(xid, &words(&[0, 0, 8, 1, 4, 7])),
        // A word behind the results.
        _ => accepted(xid, &words(&[0, 0, 0, 1, 2, 3])),
    });
    let mut client = Client::connect(address).unwrap();
    assert!(matches!(client.readlink(b""), Err(Error::Malformed(_))));
    assert!(matches!(client.lookup(b"", b""), Err(Error::Malformed(_))));
    assert!(matches!(client.read(b"", 0, 8), Err(Error::Malformed(_))));
    assert!(matches!(client.read_all(b"", 0, 8, 8, 1), Err(Error::Malformed(_))));
    assert!(matches!(client.commit(b"", 0, 0), Err(Error::Malformed(_))));
}

#[test]
fn keeps_its_window_full_and_measures() {
    let address = serve(|xid, procedure, arguments| {
        assert_eq!(procedure, 6);
        let offset = u64::from_be_bytes(arguments[8..16].try_into().unwrap());
        assert!(offset.is_multiple_of(512) && offset < 1 << 20);
        let results = [words(&[0, 0, 512, 0, 512]), vec![7; 512]].concat();
        accepted(xid, &results)
    });
    let mut client = Client::connect(address).unwrap();
    let load = Load {
        kind: Kind::Read(512),
        window: 16,
        sending: Sending::Plain,
        file_bytes: 1 << 20,
        sequential: false,
        duration: Duration::from_millis(20),
        seed: 1,
    };
    let report = client.load(b"hand", &load).unwrap();
    assert!(report.calls >= 16);
    assert_eq!(report.data_bytes, report.calls * 512);
    let order = [report.p50_ns, report.p99_ns, report.p999_ns, report.max_ns];
    assert!(order.is_sorted() && order[0] > 0, "{order:?}");
}

#[test]
fn scattered_places_come_once_each_and_not_in_steps() {
    for places in [1, 2, 8, 1 << 13] {
        let mut seen: Vec<u64> = (0..places).map(|number| crate::load::scattered(number, places)).collect();
        let steps: std::collections::BTreeSet<u64> =
            seen.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        assert!(places < 1 << 13 || steps.len() > 1_000, "{} different steps", steps.len());
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..places), "{places}");
    }
}

#[test]
fn sends_so_many_calls_a_second_whatever_is_answered() {
    let address = serve(|xid, _, _| accepted(xid, &[words(&[0, 0, 512, 0, 512]), vec![7; 512]].concat()));
    let mut client = Client::connect(address).unwrap();
    let load = Load {
        kind: Kind::Read(512),
        window: 1,
        sending: Sending::Plain,
        file_bytes: 1 << 20,
        sequential: false,
        duration: Duration::from_millis(50),
        seed: 1,
    };
    let report = client.load_at_rate(b"hand", &load, 2_000.0).unwrap();
    assert_eq!(report.calls, 100);
    assert!(report.elapsed >= Duration::from_millis(49), "{report:?}");
}
