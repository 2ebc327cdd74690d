use object_store::path::Path;

use super::{Address, Place};

fn address(place: Place, prefix: &str) -> Address {
    Address { place, prefix: Path::from(prefix) }
}

#[test]
fn urls_name_a_place_and_a_prefix() {
    let bucket = || "b".to_owned();
    for (url, expected) in [
        ("s3://b", address(Place::S3 { bucket: bucket() }, "")),
        ("s3://b/", address(Place::S3 { bucket: bucket() }, "")),
        ("s3://b/home/", address(Place::S3 { bucket: bucket() }, "home")),
        ("gs://b/a/home", address(Place::Google { bucket: bucket() }, "a/home")),
        ("az://b/home", address(Place::Azure { container: bucket() }, "home")),
        ("file:///srv/v", address(Place::Directory("/srv/v".into()), "")),
        ("memory:", address(Place::Memory, "")),
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
        "s3://b?x=1",
        "s3://b#x",
        "s3://key@b/",
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
fn names_stand_below_the_prefix() {
    let path = |url: &str| Address::parse(url).unwrap().path("data/0a/000001-000000000a").to_string();
    assert_eq!(path("s3://b/home"), "home/data/0a/000001-000000000a");
    assert_eq!(path("s3://b"), "data/0a/000001-000000000a");
}
