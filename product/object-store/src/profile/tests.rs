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
    Profile::read(&variables)
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
    assert_eq!(Profile::read(&Variables::new()), Profile::default());
    let nowhere = Variables::from([("HOME".to_owned(), "/nowhere".to_owned())]);
    assert_eq!(Profile::read(&nowhere), Profile::default());
}

#[test]
fn headers_and_values_are_read_as_the_command_line_reads_them() {
    for header in ["[profile p] # mine", "[profile \"p\"]", "[ profile  p ]\t; mine", "[profile 'p']"] {
        let text = format!(
            "[default]\nregion = no\n{header}\nregion = eu # old\nendpoint_url = http://h/#1\n[q]\nregion = no\n"
        );
        let values = super::section(&text, "profile p").unwrap();
        assert_eq!(values.get("region").map(String::as_str), Some("eu"), "{header}");
        assert_eq!(values.get("endpoint_url").map(String::as_str), Some("http://h/#1"), "{header}");
    }
    assert_eq!(super::section("[p]\n", "other"), None);
    assert_eq!(super::section("[p]\n", "p").map(|values| values.len()), Some(0));
}
