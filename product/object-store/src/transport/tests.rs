mod keys;

use reqwest::header::HeaderValue;

use super::*;

const XML: &str = "<Error><Code>NoSuchKey</Code></Error>";
const PAGE: &str = "<!DOCTYPE html>\n<html><body>404</body></html>";
const ABSENT: &str = "<Error><Code>NoSuchBucket</Code></Error>";
const KINDS: [Asked; 6] = [Asked::Names, Asked::Part(4), Asked::Whole, Asked::Change, Asked::Copy, Asked::Removal];

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
}

#[test]
fn the_kind_of_a_request_is_in_its_method_query_and_headers() {
    let asked = |method: Method, query, pairs: &[_]| Asked::of(&method, query, &headers(pairs));
    assert_eq!(asked(Method::GET, "list-type=2&prefix=a", &[]), Asked::Names);
    assert_eq!(asked(Method::GET, "restype=container&comp=list", &[]), Asked::Names);
    assert_eq!(asked(Method::GET, "", &[("range", "bytes=10-19")]), Asked::Part(10));
    assert_eq!(asked(Method::GET, "", &[("range", "bytes=-7")]), Asked::Part(7));
    assert_eq!(asked(Method::GET, "", &[("range", "bytes=7-")]), Asked::Whole);
    assert_eq!(asked(Method::GET, "", &[("range", "bytes=9-1")]), Asked::Whole);
    assert_eq!(asked(Method::HEAD, "", &[]), Asked::Whole);
    assert_eq!(asked(Method::PUT, "", &[("x-amz-copy-source", "b/a")]), Asked::Copy);
    assert_eq!(asked(Method::POST, "uploads", &[]), Asked::Change);
    assert_eq!(asked(Method::DELETE, "", &[]), Asked::Removal);
}

/// An absence of an object is an answer to some requests. For the others, the store is away.
#[test]
fn a_404_means_an_object_or_the_store() {
    for asked in KINDS {
        let needs_store = matches!(asked, Asked::Names | Asked::Change);
        let seen = |text| asked.failure(StatusCode::NOT_FOUND, text) == AWAY;
        assert_eq!((seen(XML), seen("")), (needs_store, needs_store), "{asked:?}");
        assert!(seen(ABSENT) && seen(PAGE) && seen("<Error><Code>ContainerNotFound</Code></Error>"), "{asked:?}");
        assert!(!seen("<Code>NoSuchUpload</Code>"), "{asked:?}: the upload itself is gone");
        for other in [StatusCode::FORBIDDEN, StatusCode::BAD_REQUEST, StatusCode::INTERNAL_SERVER_ERROR] {
            assert_eq!(asked.failure(other, PAGE), other);
        }
    }
}

#[test]
fn a_success_of_another_kind_is_no_object() {
    for asked in KINDS {
        assert_eq!(asked.success(StatusCode::OK, &headers(&[("content-encoding", "gzip")])), AWAY, "{asked:?}");
        let empty = asked.success(StatusCode::OK, &headers(&[("content-length", "0")]));
        let is_part = matches!(asked, Asked::Part(_));
        assert_eq!(empty, if is_part { NOTHING_THERE } else { StatusCode::OK }, "{asked:?}");
        assert_eq!(asked.success(StatusCode::PARTIAL_CONTENT, &headers(&[])), StatusCode::PARTIAL_CONTENT);
    }
}

#[test]
fn only_a_whole_list_is_one() {
    let list = b"<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Name>b</Name></ListBucketResult>\n";
    assert!(is_names(list) && is_names(b"<EnumerationResults><Blobs/></EnumerationResults>"));
    assert!(is_names(b"<ListBucketResult/>"));
    for body in [&b""[..], PAGE.as_bytes(), XML.as_bytes(), &list[..list.len() - 8], b"{}"] {
        assert!(!is_names(body), "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn keys_are_doubted_where_new_ones_may_help() {
    let doubts = |status, text| is_doubting_keys(StatusCode::from_u16(status).unwrap(), text);
    assert!(doubts(401, "") && doubts(403, "") && doubts(400, "<Code>ExpiredToken</Code>"));
    assert!(!doubts(400, "<Code>InvalidRequest</Code>") && !doubts(404, "") && !doubts(503, "ExpiredToken"));
}
