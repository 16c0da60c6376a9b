//! Swaps that show nothing, against one turn of the loop after the other, in made-up time.

use takt_core::limits::{FRAME_ENDS_MAX, IN_FLIGHT_MAX};
use takt_core::policy::Timeline;
use takt_core::{Action, AppId, Event, Gpu, GroupKind};
use takt_daemon::rt::endpoint::Fault;
use takt_daemon::rt::queues::Note;
use takt_trace::Record;

use crate::rig::Rig;

fn rig(gpu: Gpu) -> Rig {
    Rig::on(gpu, Box::new(Timeline::new()), 1, 4)
}

/// A turn; all that was told in it.
fn turn(rig: &mut Rig) -> Vec<Note> {
    rig.notes();
    rig.turn();
    rig.notes()
}

fn has(notes: &[Note], wanted: impl Fn(&Record) -> bool) -> bool {
    notes.iter().any(|note| matches!(note, Note::Record(_, record) if wanted(record)))
}

fn fault(notes: &[Note]) -> Option<Fault> {
    notes.iter().find_map(|note| match note {
        Note::Gone { fault, .. } => *fault,
        _ => None,
    })
}

#[test]
fn a_swap_that_shows_nothing_is_granted_at_once_and_is_no_group() {
    for gpu in [Gpu::InOrder, Gpu::TURNS] {
        let mut rig = rig(gpu);
        let (mut other, mut app) = (rig.join(0, 0), rig.join(1, 1));
        app.submit(0, 100, GroupKind::Draw);
        rig.turn();
        app.complete(0, rig.now);
        other.submit(0, 100, GroupKind::Draw);
        rig.turn();
        assert_eq!((app.granted(), other.granted()), (vec![0], vec![0]), "the other has the only slot");
        app.submit(1, 0, GroupKind::Swap);
        app.submit(2, 1, GroupKind::Swap);
        let notes = turn(&mut rig);
        assert_eq!(app.granted(), [1], "{gpu:?}: one that takes time waits");
        assert!(has(&notes, |record| matches!(record, Record::In(Event::EndFrame { app: AppId(1) }))));
        assert!(has(&notes, |record| matches!(record, Record::Out(Action::FrameDone(done)) if done.met)));
        // That it is over is of no interest, but said once.
        app.complete(1, rig.now);
        let notes = turn(&mut rig);
        assert!(!has(&notes, |record| matches!(record, Record::In(Event::Complete { .. }))));
        assert_eq!(fault(&notes), None);
        app.complete(1, rig.now);
        assert_eq!(fault(&turn(&mut rig)), Some(Fault::NotGranted(1)));
    }
}

#[test]
fn a_client_that_ends_frames_without_end_is_evicted() {
    let mut rig = rig(Gpu::TURNS);
    let (mut app, others) = (rig.join(0, 0), rig.join(1, 1));
    (0..=FRAME_ENDS_MAX as u64).for_each(|group| app.submit(group, 0, GroupKind::Swap));
    assert_eq!(fault(&turn(&mut rig)), Some(Fault::TooMany), "too many at once");
    // One that never says that its swaps are over.
    let mut app = rig.join(0, 0);
    let faults: Vec<_> = (0..=IN_FLIGHT_MAX as u64)
        .map(|group| {
            app.submit(group, 0, GroupKind::Swap);
            fault(&turn(&mut rig))
        })
        .collect();
    let (last, before) = faults.split_last().expect("some turns");
    assert!(before.iter().all(Option::is_none));
    assert_eq!(*last, Some(Fault::TooMany));
    assert!(rig.engine.endpoint(AppId(1)).is_some(), "others stay");
    drop(others);
}
