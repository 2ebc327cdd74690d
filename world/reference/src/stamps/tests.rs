use super::*;
use afflux_simulator::Random;

use crate::{FileModel, Stamp, pattern};

const PAGE: usize = PAGE_BYTES as usize;

/// Writes whole pages at once and returns their bytes.
fn write(model: &mut StampModel, page: u64, pages: u64) -> Vec<u8> {
    let write = model.begin_write(page * PAGE_BYTES, pages * PAGE_BYTES);
    let mut bytes = vec![0; pages as usize * PAGE];
    write.stamp(0, &mut bytes);
    model.end_write(write, Ending::Done);
    bytes
}

fn read(model: &mut StampModel, page: u64, got: &[u8]) -> Result<(), String> {
    let look = model.begin_read();
    model.end_read(look, page * PAGE_BYTES, got.len() as u64, got).map_err(|mismatch| mismatch.what)
}

fn sync(model: &mut StampModel) {
    let look = model.begin_sync();
    model.end_sync(look, 0, u64::MAX);
}

#[test]
fn a_stamp_says_what_it_was_made_from() {
    let stamp = PageStamp { file: 7, version: u32::MAX, page: u64::MAX - 1 };
    assert_eq!(PageStamp::from_bytes(stamp.to_bytes()), Some(stamp));
    assert_eq!(PageStamp::from_bytes([0; 16]), None);
}

#[test]
fn what_was_written_last_is_read_and_nothing_else() {
    let mut model = StampModel::new(3, 0);
    let old = write(&mut model, 0, 8);
    let new = write(&mut model, 2, 2);
    let mut right = old.clone();
    right[2 * PAGE..4 * PAGE].copy_from_slice(&new);
    read(&mut model, 0, &right).unwrap();
    let error = read(&mut model, 0, &old).unwrap_err();
    assert!(error.contains("page 2 holds version 1 of page 2 of file 3; written last was 2"), "{error}");
    // Wrong answers: another page's bytes, another file's, zeros, and a short read.
    let mut moved = right.clone();
    moved.copy_within(0..PAGE, PAGE);
    assert!(read(&mut model, 0, &moved).unwrap_err().contains("page 1 holds version 1 of page 0"));
    let mut other = StampModel::new(4, 0);
    let foreign = write(&mut other, 0, 8);
    assert!(read(&mut model, 0, &foreign).unwrap_err().contains("of file 4"));
    right[5 * PAGE..6 * PAGE].fill(0);
    assert!(read(&mut model, 0, &right).unwrap_err().contains("page 5 holds zeros"));
    let look = model.begin_read();
    assert!(model.end_read(look, 0, 9 * PAGE_BYTES, &old[..PAGE]).unwrap_err().what.contains("the size is between"));
}

#[test]
fn a_failed_write_may_show_until_the_next_one_has_ended() {
    let mut model = StampModel::new(1, 0);
    let old = write(&mut model, 0, 1);
    let failing = model.begin_write(0, PAGE_BYTES);
    let mut new = vec![0; PAGE];
    failing.stamp(0, &mut new);
    model.end_write(failing, Ending::Failed);
    read(&mut model, 0, &old).unwrap();
    read(&mut model, 0, &new).unwrap();
    let newest = write(&mut model, 0, 1);
    read(&mut model, 0, &newest).unwrap();
    read(&mut model, 0, &new).unwrap_err();
}

#[test]
fn after_a_crash_a_page_is_as_synced_or_newer() {
    let mut model = StampModel::new(1, 0);
    let first = write(&mut model, 0, 2);
    model.check_crashed(0, &vec![0; 2 * PAGE]).unwrap();
    let second = write(&mut model, 0, 1);
    sync(&mut model);
    let third = write(&mut model, 0, 1);
    model.check_crashed(0, &second).unwrap();
    model.check_crashed(0, &third).unwrap();
    model.check_crashed(PAGE_BYTES, &first[PAGE..]).unwrap();
    assert!(model.check_crashed(0, &first).unwrap_err().what.contains("synced 2"));
    model.check_crashed(PAGE_BYTES, &[0; PAGE]).unwrap_err();
    model.check_crashed_size(2 * PAGE_BYTES, PAGE_BYTES).unwrap_err();
    model.check_crashed_size(2 * PAGE_BYTES, 2 * PAGE_BYTES).unwrap();
}

#[test]
fn a_sync_covers_what_was_there_when_it_began_in_its_range() {
    let mut model = StampModel::new(1, 0);
    let old = write(&mut model, 0, 4);
    let look = model.begin_sync();
    let new = write(&mut model, 1, 1);
    model.end_sync(look, 0, 3 * PAGE_BYTES);
    model.check_crashed(0, &old).unwrap();
    model.check_crashed(PAGE_BYTES, &new).unwrap();
    for (page, may_be_lost) in [(0, false), (1, false), (2, false), (3, true)] {
        assert_eq!(model.check_crashed(page * PAGE_BYTES, &[0; PAGE]).is_ok(), may_be_lost, "page {page}");
    }
    sync(&mut model);
    model.check_crashed(0, &old).unwrap_err();
    model.check_crashed(3 * PAGE_BYTES, &[0; PAGE]).unwrap_err();
}

#[test]
fn cut_and_punched_pages_are_zeros() {
    let mut model = StampModel::new(1, 0);
    let old = write(&mut model, 0, 4);
    model.zeroed(PAGE_BYTES, PAGE_BYTES);
    read(&mut model, 0, &old).unwrap_err();
    let mut right = old.clone();
    right[PAGE..2 * PAGE].fill(0);
    read(&mut model, 0, &right).unwrap();
    model.zeroed(2 * PAGE_BYTES, u64::MAX);
    read(&mut model, 0, &right[..2 * PAGE]).unwrap();
    let grown = write(&mut model, 3, 1);
    right[2 * PAGE..3 * PAGE].fill(0);
    right[3 * PAGE..].copy_from_slice(&grown);
    read(&mut model, 0, &right).unwrap();
}

#[test]
fn stamps_of_which_a_part_was_written_are_not_judged() {
    let mut model = StampModel::new(1, 0);
    let write = model.begin_write(100, 2 * PAGE_BYTES - 92);
    let mut bytes = vec![0; write.len() as usize];
    write.stamp(0, &mut bytes);
    model.end_write(write, Ending::Done);
    let mut whole = vec![0; 2 * PAGE + 8];
    whole[100..].copy_from_slice(&bytes);
    whole[2 * PAGE..].fill(9);
    read(&mut model, 0, &whole).unwrap();
    whole[PAGE] ^= 1;
    read(&mut model, 0, &whole).unwrap_err();
}

#[test]
fn a_stream_is_few_runs_and_syncs_cost_what_was_written() {
    let mut model = StampModel::new(1, 0);
    for at in 0..4096 {
        let write = model.begin_write(at << 20, 1 << 20);
        model.end_write(write, Ending::Done);
    }
    assert!(model.runs() <= 8192, "{}", model.runs());
    assert_eq!(model.unsynced.len(), 1);
    // Rewriting one page again and again leaves a bounded number of entries.
    for _ in 0..20_000 {
        let write = model.begin_write(7 << 20, PAGE_BYTES);
        model.end_write(write, Ending::Done);
    }
    assert!(model.unsynced.len() <= UNSYNCED_MAX);
    assert!(model.ended.len() <= 1 && model.superseded.is_empty());
    sync(&mut model);
    assert!(model.unsynced.is_empty());
}

/// Both models of one file, with the same calls.
struct Pair {
    stamps: StampModel,
    bytes: FileModel,
    writing: Vec<(StampWrite, crate::ChangeId)>,
    looking: Vec<(StampLook, Stamp)>,
    syncing: Vec<(StampLook, Stamp, u64, u64)>,
    random: Random,
}

const PAGES: u64 = 5;

impl Pair {
    fn step(&mut self) {
        let page = self.random.below(PAGES);
        let count = self.random.between(1, PAGES - page);
        match self.random.below(10) {
            0..=2 if self.writing.len() < 4 => {
                let write = self.stamps.begin_write(page * PAGE_BYTES, count * PAGE_BYTES);
                let change = self.bytes.begin_write(write.offset(), write.len(), write.version.into());
                self.writing.push((write, change));
            }
            3..=5 if !self.writing.is_empty() => {
                let at = self.random.below(self.writing.len() as u64) as usize;
                let (write, change) = self.writing.swap_remove(at);
                let ending = match self.random.below(60) {
                    0 => Ending::Abandoned,
                    1..=6 => Ending::Failed,
                    _ => Ending::Done,
                };
                self.stamps.end_write(write, ending);
                self.bytes.end(change, ending);
            }
            6 if self.looking.len() < 3 => self.looking.push((self.stamps.begin_read(), self.bytes.look())),
            7 if !self.looking.is_empty() => {
                let at = self.random.below(self.looking.len() as u64) as usize;
                self.stamps.end_look(self.looking.swap_remove(at).0);
            }
            8 if self.syncing.len() < 2 => {
                let (look, since) = (self.stamps.begin_sync(), self.bytes.look());
                self.syncing.push((look, since, page * PAGE_BYTES, count * PAGE_BYTES));
            }
            9 if !self.syncing.is_empty() => {
                let (look, since, offset, len) = self.syncing.swap_remove(0);
                if self.random.chance(800) {
                    self.stamps.end_sync(look, offset, len);
                    self.bytes.note_synced(since, offset, len);
                } else {
                    self.stamps.end_look(look);
                }
            }
            _ => {}
        }
    }

    /// For every version and page: whether each read in progress may see it, and whether a crash may leave it.
    fn compare(&self) -> (u64, u64) {
        let (mut compared, mut lenient) = (0, 0);
        for page in 0..PAGES {
            for version in 0..=self.stamps.versions {
                let stamp = PageStamp { file: 1, version, page };
                let stamped = if version == 0 { [0; 16] } else { stamp.to_bytes() };
                let offset = page * PAGE_BYTES;
                let mut real = [0; 16];
                pattern(version.into(), offset, &mut real);
                for (look, since) in &self.looking {
                    let right = self.bytes.check_bytes(*since, offset, &real).is_ok();
                    let got = self.stamps.each_stamp(offset, &stamped, |page, version, cell| {
                        version == cell.last || self.stamps.may_show(page, version, look.began)
                    });
                    // A version that was never written to this page has no stamp on it.
                    assert_eq!(got.is_ok(), right, "page {page} version {version}: {got:?}");
                    compared += 1;
                }
                let right = self.bytes.check_crashed(offset, &real).is_ok();
                let got = self.stamps.check_crashed(offset, &stamped).is_ok();
                assert!(got || !right, "after a crash: page {page} version {version}");
                let written = version == 0 || self.bytes.was_written_there(offset, version.into());
                lenient += u64::from(got && !right && written);
                compared += 1;
            }
        }
        (compared, lenient)
    }
}

#[test]
fn the_models_of_bytes_and_of_stamps_agree() {
    let (mut compared, mut lenient) = (0, 0);
    for seed in 0..16 {
        let (stamps, bytes) = (StampModel::new(1, PAGES * PAGE_BYTES), FileModel::new(PAGES * PAGE_BYTES, 0));
        let (writing, looking, syncing) = (Vec::new(), Vec::new(), Vec::new());
        let mut pair = Pair { stamps, bytes, writing, looking, syncing, random: Random::new(seed) };
        for _ in 0..200 {
            pair.step();
            let (more, more_lenient) = pair.compare();
            (compared, lenient) = (compared + more, lenient + more_lenient);
        }
    }
    assert!(lenient * 100 < compared, "{lenient} of {compared} taken that the model of bytes would not");
}
