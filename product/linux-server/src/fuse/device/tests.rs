use super::*;

#[test]
fn a_long_message_takes_the_buffer_along_and_gives_it_back() {
    let buffers = Buffers::new(2 * MESSAGE_COPIED_MAX);
    let mut mine = buffers.take();
    mine[..3].copy_from_slice(b"abc");
    let address = mine.as_ptr();
    let message = buffers.message(&mut mine, MESSAGE_COPIED_MAX + 1);
    assert_eq!((&message.as_ref()[..3], message.as_ref().len()), (&b"abc"[..], MESSAGE_COPIED_MAX + 1));
    assert_eq!(message.as_ref().as_ptr(), address, "no copy");
    assert_eq!(mine.len(), 2 * MESSAGE_COPIED_MAX);
    drop(message);
    let again = buffers.take();
    assert_eq!(again.as_ptr(), address);
}

#[test]
fn a_short_message_is_copied_and_few_buffers_are_kept() {
    let buffers = Buffers::new(2 * MESSAGE_COPIED_MAX);
    let mut mine = buffers.take();
    let address = mine.as_ptr();
    let message = buffers.message(&mut mine, MESSAGE_COPIED_MAX);
    assert_eq!((mine.as_ptr(), message.as_ref().len()), (address, MESSAGE_COPIED_MAX));
    let long: Vec<_> = (0..2 * SPARES_MAX).map(|_| buffers.message(&mut mine, 2 * MESSAGE_COPIED_MAX)).collect();
    drop((message, long));
    assert_eq!(buffers.lock().len(), SPARES_MAX);
}
