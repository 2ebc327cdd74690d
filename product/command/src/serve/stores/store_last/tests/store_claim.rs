use super::super::StoreClaim;

#[test]
fn one_process_has_the_claim_until_its_end() {
    let long = format!("s3://bucket/{}", "x".repeat(300));
    for url in ["s3://bucket/claimed", &long] {
        let take = |url: &str, endpoint: Option<&str>| StoreClaim::take(url, endpoint).unwrap();
        let first = take(url, None).unwrap();
        assert!(take(url, None).is_none());
        assert!(take("s3://bucket/another", None).is_some() && take("s3://bucket/claimed", Some("http://x")).is_some());
        drop(first);
        assert!(take(url, None).is_some());
    }
}
