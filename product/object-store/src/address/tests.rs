mod folders;

use object_store::path::Path;

use super::{Address, StoreAddress};

fn address(store: StoreAddress, prefix: &str) -> Address {
    Address { store, prefix: Path::from(prefix) }
}

#[test]
fn urls_name_a_place_and_a_prefix() {
    let bucket = || "b".to_owned();
    for (url, expected) in [
        ("s3://b", address(StoreAddress::S3 { bucket: bucket() }, "")),
        ("s3://b/", address(StoreAddress::S3 { bucket: bucket() }, "")),
        ("s3://b/home/", address(StoreAddress::S3 { bucket: bucket() }, "home")),
        ("gs://b/a/home", address(StoreAddress::Google { bucket: bucket() }, "a/home")),
        ("az://b/home", address(StoreAddress::Azure { container: bucket() }, "home")),
        ("file:///srv/v", address(StoreAddress::Directory("/srv/v".into()), "")),
        ("memory:", address(StoreAddress::Memory, "")),
        ("file:///srv/a\\b%20c%25", address(StoreAddress::Directory("/srv/a\\b c%".into()), "")),
    ] {
        assert_eq!(Address::parse(url).as_ref(), Ok(&expected), "{url}");
    }
}

#[test]
fn wrong_urls_are_refused_with_the_url() {
    for url in [
        "",
        "s3:",
        "s3://",
        "s3://b/a//c",
        "s3://b//a",
        "s3://b/a//",
        "s3://b/../up",
        "s3://b/a/..",
        "s3://b/a/../c",
        "s3://b/%2e%2e/up",
        "s3://b/./a",
        "gs://b/a/.",
        "az://b/..",
        "file:///srv/../v",
        "file:///srv/%2E%2e/v",
        "s3://b/a?",
        "s3://b/a#",
        "s3://b/%ff",
        "s3://b/home ",
        " s3://b/home",
        "s3://b?x=1",
        "s3://b#x",
        "s3://…@b/",
        "S3://b/x",
        "abfss://c/x",
        "s3://b:9/",
        "http://b/x",
        "memory:x",
        "file://host/x",
        "/srv/v",
        "b/home",
    ] {
        let error = Address::parse(url).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(url) && error.contains("s3://BUCKET/PREFIX"), "{url}: {error}");
    }
}

#[test]
fn keys_in_an_address_are_refused_and_not_shown() {
    for url in ["s3://id:hidden@b/home", "s3://hidden@b", "az://a@hidden@b?x=@"] {
        let error = Address::parse(url).map(drop).unwrap_err().to_string();
        assert!(error.contains("://…@b") && !error.contains("hidden"), "{error}");
    }
}

#[test]
fn names_stand_below_the_prefix() {
    let path = |url: &str| Address::parse(url).unwrap().path("data/0a/000001-000000000a").to_string();
    assert_eq!(path("s3://b/home"), "home/data/0a/000001-000000000a");
    assert_eq!(path("s3://b"), "data/0a/000001-000000000a");
}

#[test]
fn control_characters_are_refused_and_not_shown() {
    for url in ["s3://b/a\nb", "s3://b/\ta", "s3://b/a\u{7f}", "s3://b/%0a", "s3://b/%C2%85", "file:///srv/a\u{1b}[2K"]
    {
        let error = Address::parse(url).map(drop).unwrap_err().to_string();
        assert!(error.contains("control character") && !error.contains(char::is_control), "{error:?}");
    }
}

#[test]
fn a_long_prefix_is_refused_with_its_length() {
    let parse = |bytes: usize| Address::parse(&format!("s3://b/{}", "x".repeat(bytes)));
    assert!(parse(900).is_ok());
    let error = parse(901).map(drop).unwrap_err().to_string();
    assert!(error.contains("901 bytes instead of at most 900"), "{error}");
}

#[test]
fn the_address_of_a_prefix_leads_to_it() {
    for prefix in ["", "home", "~a/ü", "100%", "%7Ea", "a b", "q?", "n#1", "b\\c", "x{y}", "[1]*"] {
        let address =
            Address { store: StoreAddress::S3 { bucket: "b".to_owned() }, prefix: Path::parse(prefix).unwrap() };
        let url = address.url(&address.prefix);
        assert_eq!(Address::parse(&url), Ok(address), "{url}");
    }
}
