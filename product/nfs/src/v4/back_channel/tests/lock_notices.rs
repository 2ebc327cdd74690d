use std::sync::atomic::{AtomicUsize, Ordering};

use afflux_frontend::Party;

use super::super::super::state::persisted::ServerMemory;
use super::super::super::state::sessions::SESSIONS_MAX;
use super::super::*;
use crate::v4::state::persisted::PersistedWaits;

/// A session that counts how often it is asked.
struct Carrier {
    notices: Arc<LockNotices>,
    index: u64,
    /// Its connection works.
    is_up: bool,
    asked: AtomicUsize,
}

impl Carrier {
    fn of(notices: &Arc<LockNotices>, is_up: bool) -> Arc<Self> {
        let (notices, index) = (Arc::clone(notices), notices.next_session());
        let it = Arc::new(Self { notices, index, is_up, asked: AtomicUsize::new(0) });
        // Its connection worked when it was made.
        assert!(it.take().is_none());
        it
    }

    fn take(self: &Arc<Self>) -> Option<ClientNotice> {
        let carrier: Weak<Self> = Arc::downgrade(self);
        self.notices.take(self.index, carrier)
    }
}

impl NoticeCarrier for Carrier {
    fn carry_next(self: Arc<Self>) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is_up {
            self.take();
        }
    }
}

fn notice() -> LockNotice {
    let waits = PersistedWaits::new(&ServerMemory::new(3, 0, None));
    LockNotice { file: Vec::new(), clientid: 7, owner: Box::from(*b"owner"), wait: waits.begin(Party::User(7)) }
}

// rule: a notice of a free lock asks no session of its client in vain twice, and none after the one that carries it
#[test]
fn a_notice_to_a_client_with_many_sessions_asks_one() {
    let notices = Arc::default();
    let sessions: Vec<_> = (0..SESSIONS_MAX).map(|_| Carrier::of(&notices, true)).collect();
    let asked = |of: &[Arc<Carrier>]| of.iter().map(|it| it.asked.load(Ordering::Relaxed)).sum::<usize>();
    for told in 1..=100 {
        notices.notify(notice());
        assert_eq!((asked(&sessions), notices.waiting()), (told, 0));
    }
    // Those without a connection are asked once, and an ended one is not asked.
    let dead: Vec<_> = (0..SESSIONS_MAX).map(|_| Carrier::of(&notices, false)).collect();
    notices.remove(dead[0].index);
    (0..10).for_each(|_| notices.notify(notice()));
    assert_eq!(asked(&dead), SESSIONS_MAX - 1);
}
