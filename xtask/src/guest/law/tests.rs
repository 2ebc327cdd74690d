use super::*;

#[test]
fn a_load_is_read_and_a_wrong_word_is_refused() {
    let load = Load::parse(&["--dirty-bytes", "400000000", "--seconds", "20"]).unwrap();
    let stream = Load {
        name: "stream",
        rate: 0,
        dirty_bytes: 400_000_000,
        seconds: 20,
        memory_mib: 4096,
        request_ns: 5_242_880,
    };
    assert_eq!(load, stream);
    let load = Load::parse(&["--load", "at-rate", "--rate", "20000000"]).unwrap();
    assert_eq!((load.name, load.rate, load.seconds), ("at-rate", 20_000_000, 45));
    for wrong in [&["--seconds"][..], &["--seconds", "x"], &["20"], &["20", "20"], &["--load", "bursts"]] {
        assert!(Load::parse(wrong).unwrap_err().to_string().starts_with("usage"));
    }
}

#[test]
fn a_line_of_the_kernel_is_not_in_the_table() {
    let kept = ["# kernel: 6.1", "second dirty", "12 3 4"].map(is_of_table);
    assert_eq!((kept, is_of_table("[  1.7] reboot: Power down"), is_of_table("")), ([true; 3], false, false));
}
