use super::*;

fn variables(given: &[(&str, &str)]) -> Variables {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn of_azure(given: &[(&str, &str)]) -> Result<MicrosoftAzureBuilder, String> {
    azure("c", &Options::default(), &variables(given))
}

// rule: A text of the user is used, or refused with the reason.
#[test]
fn an_account_of_azure_is_named_by_its_variable() {
    let why = of_azure(&[]).map(drop).unwrap_err();
    assert!(why.contains("set AZURE_STORAGE_ACCOUNT_NAME"), "{why}");
    let why = of_azure(&[("AZURE_STORAGE_CONNECTION_STRING", "x")]).map(drop).unwrap_err();
    assert!(why.contains("AZURE_STORAGE_CONNECTION_STRING is not read"), "{why}");
    let known = |given: &[(&str, &str)], key| of_azure(given).unwrap().get_config_value(&key);
    let of_az = [("AZURE_STORAGE_ACCOUNT", "a"), ("AZURE_STORAGE_KEY", "a2V5")];
    assert_eq!(known(&of_az, AzureConfigKey::AccountName).as_deref(), Some("a"));
    assert_eq!(known(&of_az, AzureConfigKey::AccessKey).as_deref(), Some("a2V5"));
    let both = [of_az[0], ("AZURE_STORAGE_ACCOUNT_NAME", "b"), ("AZURE_CONTAINER_NAME", "other")];
    assert_eq!(known(&both, AzureConfigKey::AccountName).as_deref(), Some("b"));
    assert_eq!(known(&both, AzureConfigKey::ContainerName).as_deref(), Some("c"), "the address names it");
}

#[test]
fn endpoints_and_settings_of_a_connection_are_used_or_refused_in_each_cloud() {
    let of_google = |given: &[(&str, &str)]| google("b", &Options::default(), &variables(given)).map(drop);
    let account = ("AZURE_STORAGE_ACCOUNT_NAME", "a");
    for (name, text, why) in [
        ("GOOGLE_BASE_URL", "h:1", "GOOGLE_BASE_URL: 'h:1' is no address"),
        ("GOOGLE_PROXY_URL", "http://h", "GOOGLE_PROXY_URL has no effect here"),
    ] {
        assert!(of_google(&[(name, text)]).unwrap_err().contains(why), "{name}");
    }
    assert_eq!(of_google(&[("GOOGLE_BASE_URL", "http://h"), ("GOOGLE_SERVICE_ACCOUNT", "")]), Ok(()));
    for (name, text, why) in [
        ("AZURE_STORAGE_ENDPOINT", "h:1", "AZURE_STORAGE_ENDPOINT: 'h:1' is no address"),
        ("AZURE_ENDPOINT", "https://key@h", "AZURE_ENDPOINT: '…@h' is no address"),
        ("AZURE_TIMEOUT", "1s", "AZURE_TIMEOUT has no effect here"),
    ] {
        let refused = of_azure(&[account, (name, text)]).map(drop).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    assert!(of_azure(&[account, ("AZURE_STORAGE_ENDPOINT", "http://h")]).is_ok());
}
