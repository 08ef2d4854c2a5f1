//! Matrices and factorisations against dense arithmetic.

use aerogel_linalg::{Matrix, MatrixError, Method, SolveError, Solver, conjugate_gradient};

/// The seven-point Laplacian on a cube of `n` cells an edge, with zero outside.
fn poisson(n: usize) -> Matrix<f64> {
    let at = |i: usize, j: usize, k: usize| ((i * n + j) * n + k) as i64;
    let mut entries = Vec::new();
    for (i, j, k) in cells(n) {
        let here = at(i, j, k);
        entries.push((here, here, 6.0));
        let mut beside = |there: i64| {
            entries.push((here, there, -1.0));
            entries.push((there, here, -1.0));
        };
        if i + 1 < n {
            beside(at(i + 1, j, k));
        }
        if j + 1 < n {
            beside(at(i, j + 1, k));
        }
        if k + 1 < n {
            beside(at(i, j, k + 1));
        }
    }
    Matrix::from_triplets((n * n * n, n * n * n), entries.into_iter()).expect("inside")
}

fn cells(n: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..n * n * n).map(move |at| (at / n / n, at / n % n, at % n))
}

fn residual(a: &Matrix<f64>, x: &[f64], b: &[f64]) -> f64 {
    let mut ax = vec![0.0; b.len()];
    a.apply(x, &mut ax, 1);
    let worst = ax.iter().zip(b).map(|(ax, b)| (ax - b).abs());
    worst.fold(0.0, f64::max)
}

#[test]
fn every_method_solves_a_poisson_problem() {
    let a = poisson(8);
    let b: Vec<f64> = (0..512).map(|i| f64::from(i % 17) - 8.0).collect();
    for method in [Method::Llt, Method::Ldlt, Method::Lu] {
        for n_threads in [1, 2] {
            let mut solver = Solver::analyze(&a, method).expect("square");
            assert!(!solver.is_factorized());
            solver.factorize(&a, n_threads).expect("positive definite");
            let mut x = b.clone();
            solver.solve_in_place(&mut x, n_threads).expect("memory");
            assert!(residual(&a, &x, &b) < 1e-11, "{method:?}");
        }
    }
    let mut x = vec![0.0; b.len()];
    let (steps, error) = conjugate_gradient(&a, &b, &mut x, 1e-10, 500, 2);
    assert!(steps < 100 && error <= 1e-10);
    assert!(residual(&a, &x, &b) < 1e-8);
    let (steps, error) = conjugate_gradient(&a, &b, &mut vec![0.0; b.len()], 1e-10, 3, 1);
    assert!(steps == 3 && error > 1e-10);
}

#[test]
fn what_cannot_be_factorised_says_why() {
    let diagonal = |d: [f64; 3]| {
        let entries = (0..3).map(|i| (i as i64, i as i64, d[i]));
        Matrix::from_triplets((3, 3), entries).expect("inside")
    };
    let of = |matrix: &Matrix<f64>, method| {
        let mut solver = Solver::analyze(matrix, method)?;
        solver.factorize(matrix, 1)
    };
    let indefinite = diagonal([1.0, -2.0, 3.0]);
    assert_eq!(
        of(&indefinite, Method::Llt),
        Err(SolveError::NotPositiveDefinite { row: 1 })
    );
    assert_eq!(of(&indefinite, Method::Ldlt), Ok(()));
    let mut large = poisson(14);
    large.set(777, 777, -100.0);
    assert_eq!(
        of(&large, Method::Llt),
        Err(SolveError::NotPositiveDefinite { row: 777 })
    );
    let singular = diagonal([1.0, 2.0, 0.0]);
    assert_eq!(
        of(&singular, Method::Ldlt),
        Err(SolveError::Singular { row: Some(2) })
    );
    assert_eq!(
        of(&singular, Method::Lu),
        Err(SolveError::Singular { row: None })
    );
    let none = Matrix::<f64>::from_triplets((3, 3), [].into_iter()).expect("inside");
    assert_eq!(
        of(&none, Method::Lu),
        Err(SolveError::Singular { row: None })
    );
    let flat = Matrix::<f64>::from_triplets((2, 3), [].into_iter()).expect("inside");
    let (n_rows, n_cols) = (2, 3);
    assert_eq!(
        of(&flat, Method::Lu),
        Err(SolveError::NotSquare { n_rows, n_cols })
    );
    let infinite = diagonal([1.0, f64::INFINITY, 1.0]);
    assert_eq!(of(&infinite, Method::Llt), Err(SolveError::NotFinite));
    let mut solver = Solver::analyze(&singular, Method::Llt).expect("square");
    assert_eq!(solver.factorize(&none, 1), Err(SolveError::OtherPattern));
}

#[test]
fn a_matrix_that_is_singular_but_for_rounding_has_a_huge_condition_number() {
    // The rows 0.1 * [[1, 2, 3], [4, 5, 6], [7, 8, 9]]: the second is the mean of the others.
    let entries: Vec<_> = (0..9)
        .map(|k: i32| (i64::from(k / 3), i64::from(k % 3), 0.1 * f64::from(k + 1)))
        .collect();
    let matrix = Matrix::<f64>::from_triplets((3, 3), entries.into_iter()).expect("inside");
    let mut solver = Solver::analyze(&matrix, Method::Lu).expect("square");
    solver.factorize(&matrix, 1).expect("no pivot is zero");
    assert!(solver.condition() > 1.0 / f64::EPSILON);
    let regular = poisson(14);
    let mut solver = Solver::analyze(&regular, Method::Lu).expect("square");
    solver.factorize(&regular, 1).expect("regular");
    assert!((1.0..1000.0).contains(&solver.condition()));
}

#[test]
fn operations_agree_with_dense_matrices() {
    let dense = |m: &Matrix<f64>| -> Vec<Vec<f64>> {
        let (n_rows, n_cols) = m.extents();
        let row = |i| (0..n_cols).map(|j| m.get(i, j)).collect();
        (0..n_rows).map(row).collect()
    };
    let entries = |seed: u64| {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as i64
        })
    };
    for seed in 0..20 {
        let mut random = entries(seed);
        let mut matrix = |n_rows: usize, n_cols: usize| {
            let n = (n_rows * n_cols) as i64;
            let triplets: Vec<(i64, i64, f64)> = (0..n / 2)
                .map(|_| {
                    let mut next = || random.next().expect("endless");
                    (
                        next() % n_rows as i64,
                        next() % n_cols as i64,
                        (next() % 9 - 4) as f64,
                    )
                })
                .collect();
            Matrix::from_triplets((n_rows, n_cols), triplets.into_iter()).expect("inside")
        };
        let (a, b, mut c) = (matrix(5, 7), matrix(5, 7), matrix(7, 4));
        let (x, y, z) = (dense(&a), dense(&b), dense(&c));
        let each = |m: Matrix<f64>, f: &dyn Fn(usize, usize) -> f64| {
            let m = dense(&m);
            for (i, row) in m.iter().enumerate() {
                for (j, &v) in row.iter().enumerate() {
                    assert_eq!(v, f(i, j), "seed {seed}, [{i}, {j}]");
                }
            }
        };
        each(a.add(&b).expect("fit"), &|i, j| x[i][j] + y[i][j]);
        each(a.sub(&b).expect("fit"), &|i, j| x[i][j] - y[i][j]);
        each(a.hadamard(&b).expect("fit"), &|i, j| x[i][j] * y[i][j]);
        each(a.scaled(3.0), &|i, j| 3.0 * x[i][j]);
        each(a.transposed().expect("memory"), &|i, j| x[j][i]);
        each(a.matmul(&c, 2).expect("fit"), &|i, j| {
            (0..7).map(|k| x[i][k] * z[k][j]).sum()
        });
        c.set(6, 3, 11.0);
        c.set(0, 0, 12.0);
        each(c.clone(), &|i, j| match (i, j) {
            (6, 3) => 11.0,
            (0, 0) => 12.0,
            _ => z[i][j],
        });
        let (col_ptr, row_idx, values) = a.parts();
        let signed = |v: &[usize]| v.iter().map(|&v| v as i64).collect::<Vec<_>>();
        let again = Matrix::from_columns((5, 7), &signed(col_ptr), &signed(row_idx), values);
        each(again.expect("well formed"), &|i, j| x[i][j]);
        let extents = [a.extents(), c.extents()];
        assert_eq!(a.add(&c).err(), Some(MatrixError::Extents(extents)));
    }
}

#[test]
fn malformed_matrices_are_refused() {
    let at = |row, col| Matrix::from_triplets((2, 2), [(row, col, 1.0f32)].into_iter()).err();
    assert_eq!(at(1, 1), None);
    assert_eq!(at(2, 0), Some(MatrixError::Outside { row: 2, col: 0 }));
    assert_eq!(at(0, -1), Some(MatrixError::Outside { row: 0, col: -1 }));
    let columns = |p: &[i64], r: &[i64]| {
        let values = vec![1.0f32; r.len()];
        Matrix::from_columns((2, 2), p, r, &values).map(|_| ())
    };
    assert_eq!(columns(&[0, 1, 2], &[0, 1]), Ok(()));
    assert!(columns(&[0, 1], &[0]).is_err());
    assert!(columns(&[0, 2, 1], &[0]).is_err());
    assert!(columns(&[0, 1, 3], &[0, 1]).is_err());
    assert!(columns(&[1, 1, 2], &[0, 1]).is_err());
    assert!(columns(&[0, 1, 2], &[0, 2]).is_err());
}

#[test]
fn asymmetry_names_an_entry() {
    let of = |entries: &[(i64, i64, f64)]| {
        Matrix::from_triplets((3, 3), entries.iter().copied())
            .expect("inside")
            .asymmetry(1e-6)
    };
    assert_eq!(of(&[(0, 0, 1.0), (1, 0, 2.0), (0, 1, 2.0)]), None);
    assert_eq!(of(&[(0, 0, 1.0), (1, 0, 2.0)]), None);
    assert_eq!(of(&[(1, 0, 2.0), (0, 1, 3.0)]), Some((1, 0)));
    assert_eq!(of(&[(0, 2, 2.0)]), Some((0, 2)));
}
