use super::*;

/// The written bytes, shared with the thread that writes them.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The exit code, the output that was passed on, and the notes.
fn ran(limit: Duration, words: &[&str]) -> (ExitCode, String, String) {
    let words = words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (output, mut notes) = (Said::default(), Said::default());
    let code = within(limit, &words, output.clone(), &mut notes).unwrap();
    (code, output.text(), notes.text())
}

#[test]
fn a_program_that_ends_keeps_its_exit_code_and_what_it_prints() {
    for (script, code) in [("exit 0", 0), ("exit 101", 101), ("kill -9 $$", 137)] {
        let said = ran(LIMIT, &["sh", "-c", &format!("echo all of it; {script}")]);
        assert_eq!(said, (ExitCode::from(code), "all of it\n".to_owned(), String::new()), "{script}");
    }
    assert!(within(LIMIT, &["/no/such/program".to_owned()], Said::default(), &mut Said::default()).is_err());
}

#[test]
fn a_program_that_hangs_is_killed_and_what_it_printed_and_what_was_running_are_told() {
    let script = "echo 'test a::slow has been running for over 60 seconds'; echo 'test b ... ok'; exec sleep 3600";
    let (code, output, notes) = ran(Duration::from_secs(2), &["sh", "-c", script]);
    assert_eq!(code, ExitCode::from(KILLED));
    assert!(output.ends_with("test b ... ok\n"), "{output}");
    assert!(notes.contains("sh had not ended after 2s and was killed.\n  test a::slow was running\n"), "{notes}");
    assert!(notes.contains(": sleep 3600\n    sleep | S"), "{notes}");
}

#[test]
fn what_a_program_leaves_behind_with_its_output_holds_nobody_up() {
    let begin = Instant::now();
    let (code, output, _) = ran(LIMIT, &["sh", "-c", "sleep 600 2> /dev/null & echo $!"]);
    assert_eq!(code, ExitCode::SUCCESS);
    assert!(begin.elapsed() < Duration::from_secs(300), "it waited for the process that was left behind");
    assert!(Command::new("sh").args(["-c", &format!("kill {output}")]).status().unwrap().success());
}

#[test]
fn the_setting_for_cargo_names_this_program_and_the_task() {
    let setting = runner().unwrap();
    let words: Vec<String> = serde_json::from_str(setting.split_once(" = ").unwrap().1).unwrap();
    assert_eq!(words.last().map(String::as_str), Some(WORD));
}
