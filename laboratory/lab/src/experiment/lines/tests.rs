use std::sync::mpsc::channel;

use super::*;

#[test]
fn a_step_that_takes_long_is_said_again_and_again() {
    let (sender, said) = channel();
    let lines = Lines::start(Duration::from_millis(20), move |line| sender.send(line).unwrap());
    lines.now(" 12 %  measuring".to_owned());
    let two: Vec<String> = said.iter().filter(|line| line.contains("measuring")).take(2).collect();
    assert!(two.iter().all(|line| line.starts_with("running for ") && line.ends_with(":  12 %  measuring")), "{two:?}");
}

#[test]
fn a_run_that_ends_soon_says_nothing() {
    let (sender, said) = channel();
    let lines = Lines::start(Duration::from_secs(3600), move |line| sender.send(line).unwrap());
    lines.now("  0 %  measuring".to_owned());
    drop(lines);
    assert_eq!(said.iter().count(), 0);
}
