use afflux_scratch::Scratch;
use object_store::aws::AmazonS3ConfigKey;

use super::{AmazonS3Builder, Keys, Options, Variables, s3};
use crate::error::StoreError;

const CREDENTIALS: &str = "[default]\naws_access_key_id = of-file\naws_secret_access_key = s\nregion = r-file\n";

fn built(options: &Options, credentials: &str, variables: &[(&str, &str)]) -> Result<AmazonS3Builder, StoreError> {
    let scratch = Scratch::new(&std::env::temp_dir(), "keys").unwrap();
    let file = scratch.path().join("credentials");
    std::fs::write(&file, credentials).unwrap();
    let mut all = Variables::from([("AWS_SHARED_CREDENTIALS_FILE".to_owned(), file.display().to_string())]);
    all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    s3("s3://b", "b", options, &all)
}

fn value(builder: &AmazonS3Builder, key: AmazonS3ConfigKey) -> Option<String> {
    builder.get_config_value(&key)
}

#[test]
fn keys_come_from_the_options_then_from_variables_then_from_files() {
    let id = |options: &Options, variables: &[(&str, &str)]| {
        value(&built(options, CREDENTIALS, variables).unwrap(), AmazonS3ConfigKey::AccessKeyId)
    };
    let variables = [("AWS_ACCESS_KEY_ID", "of-variable"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let keys = Some(Keys { id: "of-option".to_owned(), secret: "s".to_owned() });
    let options = Options { keys, ..Options::default() };
    assert_eq!(id(&options, &variables).as_deref(), Some("of-option"));
    assert_eq!(id(&Options::default(), &variables).as_deref(), Some("of-variable"));
    assert_eq!(id(&Options::default(), &[]).as_deref(), Some("of-file"));
    assert_eq!(id(&Options::default(), &[("AWS_ACCESS_KEY_ID", "")]).as_deref(), Some("of-file"));
    // A machine's own role comes before a file that somebody left there.
    assert_eq!(id(&Options::default(), &[("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")]), None);
}

#[test]
fn region_and_endpoint_have_the_same_order() {
    let region = |variables: &[(&str, &str)]| {
        value(&built(&Options::default(), CREDENTIALS, variables).unwrap(), AmazonS3ConfigKey::Region)
    };
    assert_eq!(region(&[]).as_deref(), Some("r-file"));
    assert_eq!(region(&[("AWS_DEFAULT_REGION", "r-default")]).as_deref(), Some("r-default"));
    assert_eq!(region(&[("AWS_REGION", "r"), ("AWS_DEFAULT_REGION", "r-default")]).as_deref(), Some("r"));
    let endpoint = |options: &Options| {
        let variables = [("AWS_ENDPOINT_URL", "http://v")];
        value(&built(options, CREDENTIALS, &variables).unwrap(), AmazonS3ConfigKey::Endpoint)
    };
    assert_eq!(endpoint(&Options::default()).as_deref(), Some("http://v"));
    let options = Options { endpoint: Some("http://o".to_owned()), ..Options::default() };
    assert_eq!(endpoint(&options).as_deref(), Some("http://o"));
}

// rule: A signature covers the body unless TLS guards it, or a variable says otherwise.
#[test]
fn bodies_are_signed_where_nothing_else_guards_them() {
    let unsigned = |endpoint: Option<&str>, variables: &[(&str, &str)]| {
        let options = Options { endpoint: endpoint.map(str::to_owned), ..Options::default() };
        value(&built(&options, CREDENTIALS, variables).unwrap(), AmazonS3ConfigKey::UnsignedPayload).unwrap()
    };
    assert_eq!(unsigned(None, &[]), "true");
    assert_eq!(unsigned(Some("https://o"), &[]), "true");
    assert_eq!(unsigned(Some("http://o"), &[]), "false");
    assert_eq!(unsigned(Some("http://o"), &[("AWS_UNSIGNED_PAYLOAD", "true")]), "true");
    assert_eq!(unsigned(None, &[("AWS_UNSIGNED_PAYLOAD", "false")]), "false");
}

#[test]
fn keys_from_another_program_are_refused_with_advice() {
    let error = built(&Options::default(), "[default]\ncredential_process = x\n", &[]).map(drop).unwrap_err();
    assert!(error.to_string().contains("set AWS_ACCESS_KEY_ID"), "{error}");
}

#[test]
fn a_secret_is_not_printed() {
    let keys = Keys { id: "id".to_owned(), secret: "hidden".to_owned() };
    assert!(!format!("{:?}", Options { keys: Some(keys), ..Options::default() }).contains("hidden"));
}

// rule: A text of the user is used, or refused with the reason: no library below meets a text that it cannot take.
#[test]
fn an_endpoint_that_is_no_address_is_refused_with_its_name() {
    let texts = [
        "",
        "127.0.0.1:9000",
        "store:9000",
        "http://",
        "http:/h",
        "http://h:1 # mine",
        "http://h:x",
        "ftp://h",
        "http://h\n",
    ];
    let refused = |options: &Options, credentials: &str, variables: &[(&str, &str)], name: &str| {
        let error = built(options, credentials, variables).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Settings { .. }) && error.to_string().contains(name), "{error}");
    };
    for text in texts {
        let options = Options { endpoint: Some(text.to_owned()), ..Options::default() };
        refused(&options, CREDENTIALS, &[], "--endpoint: '");
        if !text.is_empty() {
            refused(&Options::default(), CREDENTIALS, &[("AWS_ENDPOINT_URL", text)], "AWS_ENDPOINT_URL: '");
            refused(&Options::default(), CREDENTIALS, &[("AWS_ENDPOINT_URL_S3", text)], "AWS_ENDPOINT_URL_S3: '");
        }
    }
    refused(&Options::default(), "[default]\nendpoint_url = h:1\n", &[], "endpoint_url of the profile: 'h:1'");
}

#[test]
fn the_endpoint_of_s3_alone_wins_over_the_one_of_all_services() {
    let variables = [("AWS_ENDPOINT_URL", "http://all"), ("AWS_ENDPOINT_URL_S3", "http://s3")];
    let builder = built(&Options::default(), CREDENTIALS, &variables).unwrap();
    assert_eq!(value(&builder, AmazonS3ConfigKey::Endpoint).as_deref(), Some("http://s3"));
    assert_eq!(value(&builder, AmazonS3ConfigKey::UnsignedPayload).as_deref(), Some("false"), "plain HTTP is known");
}

#[test]
fn keys_and_regions_that_no_request_can_have_are_refused() {
    const KEY: (&str, &str) = ("AWS_ACCESS_KEY_ID", "k");
    const SECRET: (&str, &str) = ("AWS_SECRET_ACCESS_KEY", "s");
    for (name, shown) in [
        ("AWS_ACCESS_KEY_ID", "access key id"),
        ("AWS_SECRET_ACCESS_KEY", "secret access key"),
        ("AWS_SESSION_TOKEN", "session token"),
        ("AWS_REGION", "region"),
    ] {
        for text in ["qq\nqq", "qq qq", "qq\u{7f}"] {
            let error = built(&Options::default(), "", &[KEY, SECRET, (name, text)]).map(drop).unwrap_err().to_string();
            assert!(error.contains(&format!("the {shown} has a blank")) && !error.contains(text), "{error}");
        }
    }
}

#[test]
fn a_profile_that_is_not_there_is_refused() {
    let profile = |name| built(&Options::default(), CREDENTIALS, &[("AWS_PROFILE", name)]).map(drop);
    assert!(profile("default").is_ok() && profile("").is_ok());
    assert!(profile("typo").unwrap_err().to_string().contains("has the profile 'typo' of AWS_PROFILE"));
}
