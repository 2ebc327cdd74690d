use super::*;

fn message(opcode: u32, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message[4..8].copy_from_slice(&opcode.to_ne_bytes());
    message.extend(body);
    message
}

#[test]
fn bytes_that_were_written_are_read() {
    let mut file = vec![0; 64];
    let range = [0_u64.to_ne_bytes(), 60_u64.to_ne_bytes()].concat();
    let write = [&range[..], &6_u32.to_ne_bytes(), &[0; 20], b"abcdef"].concat();
    let Reply::Bytes(head, _) = answer(&message(16, &write), &mut file) else { panic!("no answer") };
    assert_eq!(head[..4], 4_u32.to_ne_bytes(), "no byte after the end");
    let read = [&range[..], &9_u32.to_ne_bytes()].concat();
    let Reply::Bytes(_, data) = answer(&message(15, &read), &mut file) else { panic!("no answer") };
    assert_eq!(data, b"abcd");
    assert!(matches!(answer(&message(99, &[]), &mut file), Reply::Error(NO_OPERATION)));
    assert!(matches!(answer(&message(1, b"other\0"), &mut file), Reply::Error(NO_ENTRY)));
}
