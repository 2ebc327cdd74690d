use super::*;

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn messages_since_the_last_known_one_are_complaints_but_for_mounts() {
    let before = lines(&["[1] old", "[2] last"]);
    let now = lines(&[
        "[2] last",
        "[3] EXT4-fs (loop3): mounted filesystem 1 r/w",
        "[4] INFO: task python3:77 blocked for more than 120 seconds.",
    ]);
    assert_eq!(complaints(&before, now.clone()), now[2..]);
    assert_eq!(complaints(&before, before.clone()), lines(&[]));
    // The kernel has dropped all old ones.
    assert_eq!(complaints(&before, lines(&["[9] BUG"])), lines(&["[9] BUG"]));
}

#[test]
fn the_peak_of_memory_is_found_and_bounded() {
    assert_eq!(peak_bytes("Name:\tafflux\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n"), Some(2 << 20));
    assert_eq!(peak_bytes("Name:\tkthread\n"), None);
    assert!(check_memory(std::process::id(), 0).is_ok());
    assert!(check_memory(0, 0).is_err());
}
