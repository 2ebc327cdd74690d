use afflux_scratch::Scratch;

use super::*;

const SECTORS: u64 = 256;

fn medium(flushes: bool) -> (Scratch, Medium) {
    let scratch = Scratch::new(&std::env::temp_dir(), "medium").unwrap();
    let path = scratch.path().join("medium");
    let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(SECTORS * SECTOR_BYTES).unwrap();
    (scratch, Medium::new(file, &DiskOptions { flushes, ..DiskOptions::new(SECTORS * SECTOR_BYTES) }))
}

/// Writes every sector, with this byte.
fn fill(medium: &mut Medium, byte: u8) {
    for sector in 0..SECTORS {
        medium.write(sector * SECTOR_BYTES, &[byte; SECTOR]).unwrap();
    }
}

/// The number of sectors with this byte.
fn count(medium: &Medium, byte: u8) -> usize {
    let mut bytes = vec![0; (SECTORS * SECTOR_BYTES) as usize];
    medium.read(0, &mut bytes).unwrap();
    bytes.chunks(SECTOR).filter(|sector| sector.iter().all(|at| *at == byte)).count()
}

#[test]
fn flushed_bytes_survive_a_power_cut_and_later_ones_by_the_seed() {
    let (_scratch, mut medium) = medium(true);
    fill(&mut medium, 1);
    medium.flush().unwrap();
    fill(&mut medium, 2);
    assert_eq!(count(&medium, 2), SECTORS as usize, "a read gives the last bytes");
    medium.cut(7).unwrap();
    assert_eq!(medium.read(0, &mut [0; SECTOR]), Err(Failed));
    assert_eq!((medium.write(0, &[3; SECTOR]), medium.flush()), (Err(Failed), Err(Failed)));
    medium.power_on();
    let (old, new) = (count(&medium, 1), count(&medium, 2));
    assert_eq!(old + new, SECTORS as usize);
    assert!(old.min(new) > SECTORS as usize / 4, "{old} old sectors, {new} new ones");
}

#[test]
fn a_disk_that_ignores_flushes_loses_bytes_that_it_called_durable() {
    let (_scratch, mut medium) = medium(false);
    fill(&mut medium, 1);
    medium.flush().unwrap();
    medium.cut(7).unwrap();
    medium.power_on();
    assert!(count(&medium, 0) > SECTORS as usize / 4);
}

#[test]
fn a_full_cache_is_written_out() {
    let (_scratch, mut medium) = medium(true);
    medium.cached_sectors_max = 9;
    (0..10).for_each(|sector| medium.write(sector * SECTOR_BYTES, &[1; SECTOR]).unwrap());
    medium.cut(7).unwrap();
    medium.power_on();
    assert_eq!(count(&medium, 1), 10);
}

#[test]
fn damaged_sectors_and_parts_of_sectors_fail() {
    let (_scratch, mut medium) = medium(true);
    medium.damage(8..9);
    assert_eq!(medium.read(7 * SECTOR_BYTES, &mut [0; 2 * SECTOR]), Err(Failed));
    assert_eq!(medium.read(6 * SECTOR_BYTES, &mut [0; 2 * SECTOR]), Ok(()));
    assert_eq!(medium.write(100, &[0; SECTOR]), Err(Failed));
    assert_eq!(medium.write(0, &[0; 100]), Err(Failed));
}
