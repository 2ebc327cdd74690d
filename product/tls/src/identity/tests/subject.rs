use super::super::common_name;

#[test]
fn finds_the_common_name_among_others() {
    let organisation = b"\x31\x0b\x30\x09\x06\x03\x55\x04\x0a\x0c\x02Ab";
    let common = b"\x31\x0d\x30\x0b\x06\x03\x55\x04\x03\x0c\x04host";
    assert_eq!(common_name(&[&organisation[..], common].concat()).as_deref(), Some("host"));
    assert_eq!(common_name(organisation), None);
    assert_eq!(common_name(b""), None);
}

#[test]
fn takes_long_lengths_and_no_lies() {
    let long = [b"\x31\x81\x8e\x30\x81\x8b\x06\x03\x55\x04\x03\x0c\x81\x83".to_vec(), vec![b'x'; 0x83]].concat();
    assert_eq!(common_name(&long).map(|name| name.len()), Some(0x83));
    for end in 0..long.len() {
        assert_eq!(common_name(&long[..end]), None, "{end}");
    }
    assert_eq!(common_name(b"\x31\x84\xff\xff\xff\xff"), None);
}
