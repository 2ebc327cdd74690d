use super::*;

fn write(image: &mut Image, offset: u64, bytes: &[u8]) {
    let backed = backed_of(offset, bytes, image.backed_bytes());
    image.write_backed(offset, bytes.len() as u64, &backed);
}

fn read(image: &Image, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![1; len];
    image.read(offset, &mut bytes);
    bytes
}

/// Writes `bytes` at `offset` of a plain copy of such an image, with zeros for bytes that are not backed.
fn overlay(plain: &mut Vec<u8>, offset: usize, bytes: &[u8], backed_bytes: u64) {
    plain.resize(plain.len().max(offset + bytes.len()), 0);
    for (at, byte) in bytes.iter().enumerate() {
        let backed = ((offset + at) as u64 % IMAGE_BLOCK_BYTES) < backed_bytes;
        plain[offset + at] = if backed { *byte } else { 0 };
    }
}

#[test]
fn images_of_whole_pages_and_of_stamps_do_what_a_plain_file_does() {
    for backed_bytes in [WHOLE_PAGES, STAMPS] {
        let mut random = crate::Random::new(backed_bytes);
        let (mut image, mut plain, mut there) =
            (Image::new(backed_bytes), Vec::new(), std::collections::BTreeSet::new());
        for _ in 0..2_000 {
            // The range goes beyond a chunk of stamps.
            let (offset, len) = (random.below(6 << 20), random.between(1, 40_000));
            let pages = offset / IMAGE_BLOCK_BYTES..(offset + len).div_ceil(IMAGE_BLOCK_BYTES);
            match random.below(8) {
                0 => {
                    let shrinks = offset < plain.len() as u64;
                    image.set_size(offset);
                    plain.resize(offset as usize, 0);
                    there.retain(|page| !shrinks || *page < offset.div_ceil(IMAGE_BLOCK_BYTES));
                }
                1 => {
                    image.punch(offset, len);
                    let end = plain.len().min((offset + len) as usize);
                    plain[(offset as usize).min(end)..end].fill(0);
                    there.retain(|page| !(offset.div_ceil(4096)..(offset + len) / 4096).contains(page));
                }
                2 => {
                    image.reserve(offset, len);
                    there.extend(pages);
                }
                _ => {
                    let missing = pages.clone().filter(|page| !there.contains(page)).count() as u64;
                    assert_eq!(image.blocks_missing(offset, len), missing);
                    let bytes: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
                    write(&mut image, offset, &bytes);
                    overlay(&mut plain, offset as usize, &bytes, backed_bytes);
                    there.extend(pages);
                }
            }
            assert_eq!((image.size(), image.blocks()), (plain.len() as u64, there.len() as u64));
            let (offset, len) = (random.below(6 << 20), random.below(30_000) as usize);
            let mut right = plain.get(offset as usize..).unwrap_or_default().to_vec();
            right.resize(len, 0);
            assert!(read(&image, offset, len) == right, "{len} at {offset}");
        }
    }
}

#[test]
fn clones_share_chunks_until_one_changes() {
    let mut image = Image::new(STAMPS);
    write(&mut image, 0, &[7; 4096]);
    write(&mut image, 8 << 20, &[8; 4096]);
    let mut other = image.clone();
    write(&mut other, 0, &[9; 16]);
    assert_eq!((read(&image, 0, 1), read(&other, 0, 1)), (vec![7], vec![9]));
    let shared = |chunk| Arc::ptr_eq(&image.chunks[&chunk], &other.chunks[&chunk]);
    assert_eq!((shared(0), shared(4)), (false, true));
}

#[test]
fn what_64_gib_of_stamps_take_is_a_few_hundred_mib() {
    let mut image = Image::new(STAMPS);
    let mut backed = vec![0; 256 * 16];
    // Touches one of 32 chunks of a file of 16 million pages.
    for at in (0..64 << 30).step_by(64 << 20) {
        backed.fill((at >> 26) as u8);
        image.write_backed(at, 1 << 20, &backed);
    }
    assert_eq!(image.blocks(), 1024 * 256);
    let bytes: usize = image.chunks.values().map(|chunk| chunk.bytes.len() + size_of::<Chunk>()).sum();
    assert!(bytes * 32 < 280 << 20, "{bytes} a 32nd");
    assert_eq!(read(&image, 640 << 20, 1), [10]);
}
