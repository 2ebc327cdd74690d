use afflux_scratch::Scratch;
use object_store::aws::AmazonS3ConfigKey;

use super::{AmazonS3Builder, Keys, Options, Variables, s3};

const CREDENTIALS: &str = "[default]\naws_access_key_id = of-file\naws_secret_access_key = s\nregion = r-file\n";

fn built(options: &Options, credentials: &str, variables: &[(&str, &str)]) -> Result<AmazonS3Builder, String> {
    let scratch = Scratch::new(&std::env::temp_dir(), "keys").unwrap();
    let file = scratch.path().join("credentials");
    std::fs::write(&file, credentials).unwrap();
    let mut all = Variables::from([("AWS_SHARED_CREDENTIALS_FILE".to_owned(), file.display().to_string())]);
    all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    s3("b", options, &all)
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

/// The reason against a profile.
fn refused(profile: &str, variables: &[(&str, &str)]) -> String {
    built(&Options::default(), &format!("[default]\n{profile}\n"), variables).map(drop).unwrap_err()
}

// rule: Keys that a profile has from elsewhere are not left out: the instance's keys would be another account's.
#[test]
fn keys_from_another_program_or_a_role_are_refused_with_advice() {
    for (profile, name) in [
        ("credential_process = x", "credential_process"),
        ("sso_session = x", "sso_session"),
        ("sso_start_url = x", "sso_start_url"),
        ("login_session = x", "login_session"),
        ("role_arn = r\nsource_profile = p", "source_profile"),
        ("role_arn = r\ncredential_source = Ec2InstanceMetadata", "credential_source"),
        // The role wins over keys beside it, as it does in the command line.
        ("role_arn = r\nsource_profile = p\naws_access_key_id = i\naws_secret_access_key = s", "source_profile"),
    ] {
        let why = refused(profile, &[]);
        assert!(why.contains(name) && why.contains("set AWS_ACCESS_KEY_ID"), "{why}");
        let variables = [("AWS_ACCESS_KEY_ID", "i"), ("AWS_SECRET_ACCESS_KEY", "s")];
        assert!(built(&Options::default(), &format!("[default]\n{profile}\n"), &variables).is_ok(), "{profile}");
    }
}

#[test]
fn half_a_pair_of_keys_is_refused_by_the_name_of_the_other() {
    let none = "region = r";
    assert!(refused(none, &[("AWS_ACCESS_KEY_ID", "i")]).contains("AWS_SECRET_ACCESS_KEY is not; set both"));
    assert!(refused(none, &[("AWS_SECRET_ACCESS_KEY", "s")]).contains("AWS_ACCESS_KEY_ID is not; set both"));
    assert!(refused("aws_access_key_id = i", &[]).contains("aws_secret_access_key is not; set both"));
    assert!(refused("aws_secret_access_key = i", &[]).contains("aws_access_key_id is not; set both"));
    assert!(refused(none, &[("AWS_EC2_METADATA_DISABLED", "true")]).contains("there are no keys"));
}

// rule: A text of the user is used, or refused with the reason: none that leads requests elsewhere is left out.
#[test]
fn what_would_lead_requests_elsewhere_is_refused() {
    let keys = "aws_access_key_id = i\naws_secret_access_key = s";
    for variable in ["AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_PROXY_URL", "AWS_TIMEOUT"] {
        let why = refused(keys, &[(variable, "true")]);
        assert!(why.contains(&format!("{variable} has no effect here")), "{why}");
    }
    for setting in [
        "use_fips_endpoint = true",
        "use_dualstack_endpoint = true",
        "s3 =\n  use_accelerate_endpoint = true",
        "s3 =\n  use_dualstack_endpoint = true",
        "s3 =\n  addressing_style = virtual",
    ] {
        let why = refused(&format!("{keys}\n{setting}"), &[]);
        assert!(why.contains("has no effect here"), "{setting}: {why}");
    }
    let taken = |profile: &str, variables: &[(&str, &str)]| {
        built(&Options::default(), &format!("[default]\n{keys}\n{profile}\n"), variables).map(drop)
    };
    // An address of one's own is the address.
    assert_eq!(taken("use_fips_endpoint = true", &[("AWS_ENDPOINT_URL", "http://h")]), Ok(()));
    assert_eq!(taken("use_fips_endpoint = false", &[("AWS_ALLOW_HTTP", "true"), ("AWS_PAGER", "less")]), Ok(()));
}

#[test]
fn certificates_of_a_bundle_are_used_or_refused() {
    let scratch = Scratch::new(&std::env::temp_dir(), "bundle").unwrap();
    let file = scratch.path().join("bundle.pem");
    let path = file.display().to_string();
    let found = |path: &str| {
        let variables = Variables::from([("AWS_CA_BUNDLE".to_owned(), path.to_owned())]);
        super::certificates(&variables).map(|found| found.len())
    };
    assert_eq!(found(""), Ok(0));
    assert!(found("/nowhere.pem").unwrap_err().contains("AWS_CA_BUNDLE: /nowhere.pem cannot be read"));
    std::fs::write(&file, "text").unwrap();
    assert!(found(&path).unwrap_err().contains("has no certificates in PEM"));
    let one = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&file, one.repeat(2)).unwrap();
    assert_eq!(found(&path), Ok(2));
}

#[test]
fn the_address_names_the_bucket() {
    let builder = built(&Options::default(), CREDENTIALS, &[("AWS_BUCKET", "other")]).unwrap();
    assert_eq!(value(&builder, AmazonS3ConfigKey::Bucket).as_deref(), Some("b"));
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
        assert!(error.contains(name), "{error}");
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
fn endpoints_of_a_profile_are_those_of_its_services_and_then_its_own() {
    let scratch = Scratch::new(&std::env::temp_dir(), "services").unwrap();
    let file = scratch.path().join("config");
    let endpoint = |config: &str, variables: &[(&str, &str)]| {
        std::fs::write(&file, config).unwrap();
        let path = file.display().to_string();
        let all = [&[("AWS_CONFIG_FILE", path.as_str())], variables].concat();
        built(&Options::default(), CREDENTIALS, &all).map(|builder| value(&builder, AmazonS3ConfigKey::Endpoint))
    };
    let services = "[services mine]\ndynamodb =\n  endpoint_url = http://d\ns3 =\n  endpoint_url = http://s\n";
    let config = |more: &str| format!("[default]\n{more}\n{services}");
    let found = |url: &str| Ok(Some(url.to_owned()));
    assert_eq!(endpoint(&config("services = mine\nendpoint_url = http://p"), &[]), found("http://s"));
    assert_eq!(endpoint(&config("endpoint_url = http://p"), &[]), found("http://p"));
    assert_eq!(endpoint(&config("s3 =\n  endpoint_url = http://n"), &[]), found("http://n"));
    let all = config("services = mine");
    assert_eq!(endpoint(&all, &[("AWS_ENDPOINT_URL", "http://v")]), found("http://v"));
    let ignored = [("AWS_ENDPOINT_URL", "http://v"), ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")];
    assert_eq!(endpoint(&all, &ignored), Ok(None));
    assert!(endpoint(&config("services = other"), &[]).unwrap_err().contains("no section [services other]"));
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
            let error = built(&Options::default(), "", &[KEY, SECRET, (name, text)]).map(drop).unwrap_err();
            assert!(error.contains(&format!("the {shown} has a blank")) && !error.contains(text), "{error}");
        }
    }
}

#[test]
fn a_profile_that_is_not_there_is_refused() {
    let profile = |name| built(&Options::default(), CREDENTIALS, &[("AWS_PROFILE", name)]).map(drop);
    assert!(profile("default").is_ok() && profile("").is_ok());
    assert!(profile("typo").unwrap_err().contains("has the profile 'typo' of AWS_PROFILE"));
}
