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
fn loop_devices_that_tests_break_are_usual_and_a_task_that_hangs_is_not() {
    let now = lines(&[
        "[1] EXT4-fs error (device loop66): ext4_wait_block_bitmap:582: comm kworker/u8:1: Cannot read block bitmap",
        "[2] EXT4-fs (loop66): I/O error while writing superblock",
        "[3] Buffer I/O error on dev loop66, logical block 1, lost sync page write",
        "[4] JBD2: I/O error when updating journal superblock for loop66-8.",
        "[5] Aborting journal on device loop66-8.",
        "[6] buffer_io_error: 3 callbacks suppressed",
        "[6] BTRFS: device fsid bc023b36 devid 1 transid 6 /dev/loop39 (7:39) scanned by mount (22616)",
        "[7] INFO: task loop66:77 blocked for more than 120 seconds.",
        "[8] Buffer I/O error on dev vda, logical block 1, lost sync page write",
    ]);
    assert_eq!(complaints(&[], now.clone()), now[7..]);
}

#[test]
fn the_peak_of_memory_is_found_and_bounded() {
    assert_eq!(peak_bytes("Name:\tafflux\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n"), Some(2 << 20));
    assert_eq!(peak_bytes("Name:\tkthread\n"), None);
    assert!(check_memory(std::process::id(), 0).is_ok());
    assert!(check_memory(0, 0).is_err());
}
