use super::{DirtyFileReport, Drained, Progress, done, sentence, unwritten};

#[test]
fn progress_is_told_with_rate_and_remaining_time() {
    let half = Progress { left_bytes: 7_300_000, written_bytes: 14_100_000, elapsed_ns: 562_000_000 };
    assert_eq!(sentence(half), "7.30 MB to write   25.1 MB/s   0.3 s left");
    let start = Progress { left_bytes: 21_400_000, written_bytes: 0, elapsed_ns: 1 };
    assert_eq!(sentence(start), "21.4 MB to write");
    let stuck = Progress { left_bytes: u64::MAX, written_bytes: 1, elapsed_ns: u64::MAX };
    assert!(sentence(stuck).contains("left"));
}

#[test]
fn the_end_says_what_was_written() {
    assert_eq!(done(&Drained::default()), "Done: everything is written.");
    let some = Drained { written_bytes: 21_400_000, elapsed_ns: 900_000_000, ..Drained::default() };
    assert_eq!(done(&some), "Done: everything is written (21.4 MB in 0.9 s).");
    let open = Drained { open_files: 2, ..Drained::default() };
    assert_eq!(done(&open), "Done: everything is written. Clients still have 2 files open.");
}

#[test]
fn unwritten_files_are_named_with_the_reason_and_many_are_summed() {
    let file = |at: usize| DirtyFileReport {
        file: format!("/d/{at}"),
        bytes: 1000,
        reason: (at == 0).then(|| "no space left on the device".to_owned()),
    };
    let text = unwritten("could not:", &(0..25).map(file).collect::<Vec<_>>());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "  /d/0: 1.00 kB not written: no space left on the device");
    assert_eq!(lines[2], "  /d/1: 1.00 kB not written");
    assert_eq!(lines.last().unwrap(), &"  and 5 more files: 5.00 kB not written");
}

#[test]
fn a_file_s_name_stays_in_its_line_and_controls_nothing() {
    let file = DirtyFileReport { file: "/d/a\n\x1b[2Jö\u{202e}".into(), bytes: 1000, reason: Some("b\x07".into()) };
    assert_eq!(
        unwritten("could not:", &[file]),
        "could not:\n  /d/a\\n\\u001b[2Jö\\u202e: 1.00 kB not written: b\\u0007"
    );
}
