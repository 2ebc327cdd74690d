use super::*;

#[test]
fn logarithm_and_exponential_are_right_to_the_last_digits() {
    for number in [1e-300, 1e-9, 0.3, 0.7, 1.0, 1.41, 1.5, 2.0, 10.0, 12345.678, 1e18, 1e300] {
        let error = (logarithm(number) - f64::ln(number)).abs();
        assert!(error <= 1e-15 * f64::ln(number).abs().max(1.0), "ln {number}: {error}");
    }
    for number in [-700.0, -20.5, -1.0, -0.1, 0.0, 0.2, 1.0, 3.3, 50.0, 700.0] {
        let error = (exponential(number) / f64::exp(number) - 1.0).abs();
        assert!(error < 1e-13, "exp {number}: {error}");
    }
}

#[test]
fn ranks_come_up_in_proportion() {
    for theta in [0.5, 0.99, 1.1, 2.5] {
        let (count, draws) = (1000_u64, 400_000);
        let zipf = Zipf::new(count, theta);
        let mut random = Random::new(7);
        let mut seen = vec![0_u64; count as usize];
        for _ in 0..draws {
            seen[zipf.draw(&mut random) as usize] += 1;
        }
        let whole: f64 = (1..=count).map(|rank| (rank as f64).powf(-theta)).sum();
        for rank in [1_u64, 2, 3, 10, 100] {
            let expected = draws as f64 * (rank as f64).powf(-theta) / whole;
            let error = (seen[rank as usize - 1] as f64 - expected).abs();
            // Five standard deviations.
            assert!(error < 5.0 * expected.sqrt() + 1.0, "theta {theta}, rank {rank}: {expected}, {seen:?}");
        }
    }
}

#[test]
fn a_single_rank_is_always_drawn() {
    let mut random = Random::new(1);
    assert!((0..100).all(|_| Zipf::new(1, 1.1).draw(&mut random) == 0));
}
