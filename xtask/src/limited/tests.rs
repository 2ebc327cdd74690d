use super::*;

fn ran(limit: Duration, words: &[&str]) -> ExitCode {
    within(limit, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_program_that_ends_keeps_its_exit_code_and_one_that_hangs_is_killed() {
    for (script, code) in [("exit 0", 0), ("exit 101", 101), ("kill -9 $$", 137)] {
        assert_eq!(ran(LIMIT, &["sh", "-c", script]), ExitCode::from(code), "{script}");
    }
    assert_eq!(ran(Duration::from_millis(50), &["sleep", "3600"]), ExitCode::from(KILLED));
    assert!(within(LIMIT, &["/no/such/program".to_owned()]).is_err());
}

#[test]
fn the_setting_for_cargo_names_this_program_and_the_task() {
    let setting = runner().unwrap();
    let words: Vec<String> = serde_json::from_str(setting.split_once(" = ").unwrap().1).unwrap();
    assert_eq!(words.last().map(String::as_str), Some(WORD));
}
