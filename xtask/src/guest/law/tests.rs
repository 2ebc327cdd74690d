use super::*;
use crate::words::{XtaskCmd, parsed};

fn given(words: &[&str]) -> xflags::Result<Parameters> {
    let XtaskCmd::GuestLaw(words) = parsed(&[&["guest-law"], words].concat())?.subcommand else { unreachable!() };
    Ok(parameters(&words))
}

#[test]
fn a_load_is_read_and_a_wrong_word_is_refused() {
    let (memory_mib, load) = given(&["--dirty-bytes", "400000000", "--seconds", "20", "--load", "at-rate"]).unwrap();
    assert_eq!(memory_mib, 4096);
    let values = |load: Vec<(&str, String)>| load.into_iter().map(|(_, value)| value).collect::<Vec<_>>();
    assert_eq!(values(load), ["at-rate", "0", "400000000", "20", "5242880"]);
    let (_, copy) = given(&["--load", "copy", "--server", "afflux", "--max-bytes", "25000000"]).unwrap();
    assert_eq!(values(copy)[5..], ["25000000", "afflux"]);
    for (wrong, told) in [
        (&["--seconds"][..], "a value"),
        (&["--seconds", "x"], "'x' is no whole number from 1"),
        (&["20"], "20"),
        (&["--load", "bursts"], "'bursts' is none of stream"),
        (&["--server", "nfs-ganesha"], "'nfs-ganesha' is none of knfsd"),
    ] {
        let error = given(wrong).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_line_of_the_kernel_is_not_in_the_table() {
    let kept = ["# kernel: 6.1", "window commit_ms", "12 3 4"].map(is_of_table);
    assert_eq!((kept, is_of_table("[  1.7] reboot: Power down"), is_of_table("")), ([true; 3], false, false));
}
