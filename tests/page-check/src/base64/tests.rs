use super::decode;

/// The vectors of RFC 4648, section 10, and invalid texts.
#[test]
fn bytes_come_back() {
    for (text, bytes) in
        [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmFy", "foobar")]
    {
        assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
    }
    assert_eq!(decode("+/+/"), Some(vec![0xfb, 0xff, 0xbf]));
    for text in ["Z", "Zm9vY", "Zm*v"] {
        assert_eq!(decode(text), None, "{text}");
    }
}
