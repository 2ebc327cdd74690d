mod proxy;

use afflux_scratch::Scratch;

use super::{Profile, Variables};

const CREDENTIALS: &str = "
[default]
aws_access_key_id = AK
# aws_secret_access_key = no
aws_secret_access_key=SK=/+
  ; aws_session_token = no
[other]
aws_access_key_id = AK2
";

const CONFIG: &str = "
[default]
region = eu-central-1
aws_access_key_id = shadowed
[profile other]
region = us-west-2
endpoint_url = http://127.0.0.1:9000
[profile of others]
broken line
";

fn profile(name: Option<&str>) -> Profile {
    let scratch = Scratch::new(&std::env::temp_dir(), "profile").unwrap();
    let folder = scratch.path().join(".aws");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("credentials"), CREDENTIALS).unwrap();
    std::fs::write(folder.join("config"), CONFIG).unwrap();
    let mut variables = Variables::from([("HOME".to_owned(), scratch.path().display().to_string())]);
    variables.extend(name.map(|name| ("AWS_PROFILE".to_owned(), name.to_owned())));
    Profile::read(&variables).unwrap()
}

#[test]
fn the_default_profile_has_keys_of_the_first_file_and_the_region_of_the_second() {
    let profile = profile(None);
    assert_eq!(profile.get("aws_access_key_id"), Some("AK"));
    assert_eq!(profile.get("aws_secret_access_key"), Some("SK=/+"));
    assert_eq!(profile.get("aws_session_token"), None);
    assert_eq!(profile.get("region"), Some("eu-central-1"));
}

#[test]
fn another_profile_has_its_own_values_only() {
    let profile = profile(Some("other"));
    assert_eq!(profile.get("aws_access_key_id"), Some("AK2"));
    assert_eq!(profile.get("aws_secret_access_key"), None);
    assert_eq!(profile.get("region"), Some("us-west-2"));
    assert_eq!(profile.get("endpoint_url"), Some("http://127.0.0.1:9000"));
}

#[test]
fn absent_files_have_no_keys() {
    assert_eq!(Profile::read(&Variables::new()), Ok(Profile::default()));
    let nowhere = Variables::from([("HOME".to_owned(), "/nowhere".to_owned())]);
    assert_eq!(Profile::read(&nowhere), Ok(Profile::default()));
}

#[test]
fn headers_and_values_are_read_as_the_command_line_reads_them() {
    for header in ["[profile p] # mine", "[profile \"p\"]", "[ profile  p ]\t; mine", "[profile 'p']"] {
        let text = format!(
            "[default]\nregion = no\n{header}\nregion = eu # old\nendpoint_url = http://h/#1\n[q]\nregion = no\n"
        );
        let values = super::section(&text, "profile p").unwrap().unwrap();
        assert_eq!(values.get("region").map(String::as_str), Some("eu"), "{header}");
        assert_eq!(values.get("endpoint_url").map(String::as_str), Some("http://h/#1"), "{header}");
    }
    assert_eq!(super::section("[p]\n", "other"), Ok(None));
    assert_eq!(super::section("[p]\n", "p").map(|values| values.map(|values| values.len())), Ok(Some(0)));
}

#[test]
fn a_value_further_to_the_right_belongs_to_the_one_above() {
    let text = "[p]\n  region = r\n  s3 =\n    region = of-s3\n    # a comment\n    max = 1\n  output = json\n";
    let values = super::section(text, "p").unwrap().unwrap();
    let names: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(names, [("output", "json"), ("region", "r"), ("s3", ""), ("s3.max", "1"), ("s3.region", "of-s3")]);
}

// rule: A line of the profile is understood, or refused by its line number; a file that a variable names is read.
#[test]
fn lines_and_files_that_cannot_be_read_are_refused() {
    for (text, line) in [("[p]\nbroken\n", 2), ("[q]\nx\n[p]\na = 1\n  b = 2\n", 5), ("[p]\n[q\n", 2)] {
        assert_eq!(super::section(text, "p"), Err(line), "{text}");
    }
    let scratch = Scratch::new(&std::env::temp_dir(), "profile").unwrap();
    let file = scratch.path().join("config");
    std::fs::write(&file, "[default]\nbroken\n").unwrap();
    let named = |path: &str| Variables::from([("AWS_CONFIG_FILE".to_owned(), path.to_owned())]);
    let why = Profile::read(&named(&file.display().to_string())).unwrap_err();
    assert!(why.contains("config, line 2"), "{why}");
    let why = Profile::read(&named("/nowhere/config")).unwrap_err();
    assert!(why.contains("AWS_CONFIG_FILE: /nowhere/config cannot be read"), "{why}");
}
