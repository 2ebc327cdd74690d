use super::*;

#[test]
fn fields_are_read_in_order_and_no_further_than_the_message() {
    let mut bytes = Vec::new();
    bytes.u32(7);
    bytes.u64(u64::MAX - 1);
    bytes.u16(9);
    bytes.raw(b"name\0rest");
    let mut reader = FieldReader::new(&bytes);
    assert_eq!((reader.u32(), reader.u64(), reader.u16()), (Ok(7), Ok(u64::MAX - 1), Ok(9)));
    assert_eq!(reader.name(), Ok(&b"name"[..]));
    assert_eq!(reader.rest(), b"rest");
    assert_eq!(reader.name(), Err(WireError::Unended));
    assert_eq!(reader.u64(), Err(WireError::Truncated));
    assert_eq!(reader.rest(), b"rest", "a field that is not there takes nothing");
}
