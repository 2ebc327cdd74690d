use super::*;

/// A shell's success and output.
fn ran(limit: Duration, script: &str) -> (bool, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]);
    within(limit, shell).unwrap()
}

#[test]
fn a_program_that_ends_keeps_its_success_and_what_it_prints() {
    for (script, is_success) in [("exit 0", true), ("exit 101", false), ("kill -9 $$", false)] {
        let said = ran(LIMIT, &format!("echo all; echo of >&2; echo it; {script}"));
        assert_eq!(said, (is_success, "all\nof\nit\n".to_owned()), "{script}");
    }
    assert!(within(LIMIT, Command::new("/no/such/program")).is_err());
}

#[test]
fn a_program_that_hangs_is_killed_and_what_it_printed_and_what_was_running_are_told() {
    let script = "echo 'test a::slow has been running for over 60 seconds'; echo 'test b ... ok'; exec sleep 3600";
    let (is_success, output) = ran(Duration::from_secs(2), script);
    assert!(!is_success);
    let told = "test b ... ok\nerror: sh had not ended after 2s and was killed.\n  test a::slow was running\n";
    assert!(output.contains(told), "{output}");
    assert!(output.contains(": sleep 3600\n    sleep | S"), "{output}");
}

#[test]
fn what_a_program_leaves_behind_with_its_output_holds_nobody_up() {
    let begin = Instant::now();
    let (is_success, output) = ran(LIMIT, "sleep 600 & echo $!");
    assert!(is_success);
    assert!(begin.elapsed() < Duration::from_secs(300), "it waited for the process that was left behind");
    assert!(Command::new("sh").args(["-c", &format!("kill {output}")]).status().unwrap().success());
}
