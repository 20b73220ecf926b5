//! A logistic regression: iteratively reweighted least squares with a penalty on large weights.
//!
//! Invariant: sums go in the order of the samples, so the same samples give the same weights.

/// A text of the fit.
#[derive(Clone, Debug)]
pub(crate) struct FitSample {
    pub(crate) values: Vec<f64>,
    pub(crate) is_good: bool,
    pub(crate) weight: f64,
    /// What is left out together when the fit is checked.
    pub(crate) domain: String,
}

/// The weights of a fit, for the values as they are.
#[derive(Clone, Debug)]
pub(crate) struct FittedWeights {
    pub(crate) means: Vec<f64>,
    /// Standard deviation of each value that is used, 0 of the others.
    pub(crate) scales: Vec<f64>,
    pub(crate) weights: Vec<f64>,
    pub(crate) intercept: f64,
}

impl FittedWeights {
    pub(crate) fn logit(&self, values: &[f64]) -> f64 {
        let parts = values.iter().zip(&self.means).zip(&self.weights);
        self.intercept
            + parts
                .map(|((value, mean), weight)| (value - mean) * weight)
                .sum::<f64>()
    }
}

/// The sign that a weight may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeightSign {
    Positive,
    Negative,
    Any,
}

/// Fits weights to samples, each of its sign or 0. `penalty` is of the squares of the weights of values of unit variance.
pub(crate) fn fitted(samples: &[FitSample], signs: &[WeightSign], penalty: f64) -> FittedWeights {
    let mut is_used = vec![true; signs.len()];
    loop {
        let fit = fitted_to(samples, &is_used, penalty);
        let is_wrong = |at: usize| match signs[at] {
            WeightSign::Positive => fit.weights[at] < 0.0,
            WeightSign::Negative => fit.weights[at] > 0.0,
            WeightSign::Any => false,
        };
        let wrong: Vec<usize> = (0..signs.len()).filter(|at| is_used[*at] && is_wrong(*at)).collect();
        // The worst ones go first: without them another may have its sign.
        let size = |at: &usize| fit.weights[*at].abs() * fit.scales[*at];
        let Some(worst) = wrong.iter().map(size).reduce(f64::max) else {
            return fit;
        };
        for at in wrong.iter().filter(|at| size(at) >= worst * 0.5) {
            is_used[*at] = false;
        }
    }
}

fn fitted_to(samples: &[FitSample], is_used: &[bool], penalty: f64) -> FittedWeights {
    let count = samples.first().map_or(0, |sample| sample.values.len());
    let whole: f64 = samples.iter().map(|sample| sample.weight).sum();
    let mean = |of: &dyn Fn(&FitSample) -> f64| samples.iter().map(|s| s.weight * of(s)).sum::<f64>() / whole;
    let means: Vec<f64> = (0..count).map(|at| mean(&|sample| sample.values[at])).collect();
    let scales: Vec<f64> = (0..count)
        .map(|at| mean(&|sample| (sample.values[at] - means[at]) * (sample.values[at] - means[at])).sqrt())
        .collect();
    // A value that never differs has no weight.
    let scales: Vec<f64> = scales
        .iter()
        .zip(is_used)
        .map(|(scale, is_used)| if *scale > 1e-9 && *is_used { 1.0 / scale } else { 0.0 })
        .collect();
    let rows: Vec<Vec<f64>> = samples
        .iter()
        .map(|sample| {
            let scaled = (0..count).map(|at| (sample.values[at] - means[at]) * scales[at]);
            scaled.chain([1.0]).collect()
        })
        .collect();
    let mut weights = vec![0.0; count + 1];
    for _ in 0..30 {
        let mut gradient = vec![0.0; count + 1];
        let mut curvature = vec![vec![0.0; count + 1]; count + 1];
        for (row, sample) in rows.iter().zip(samples) {
            let logit: f64 = row.iter().zip(&weights).map(|(value, weight)| value * weight).sum();
            let chance = 1.0 / (1.0 + (-logit).exp());
            let error = sample.weight * (f64::from(u8::from(sample.is_good)) - chance);
            let spread = sample.weight * (chance * (1.0 - chance)).max(1e-6);
            for one in 0..=count {
                gradient[one] += error * row[one];
                for (part, value) in curvature[one].iter_mut().zip(row) {
                    *part += spread * row[one] * value;
                }
            }
        }
        for one in 0..=count {
            if one < count {
                gradient[one] -= penalty * weights[one];
                curvature[one][one] += penalty;
            }
        }
        let step = solved(curvature, gradient);
        let largest = step.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
        for (weight, part) in weights.iter_mut().zip(&step) {
            *weight += part;
        }
        if largest < 1e-9 {
            break;
        }
    }
    let intercept = weights[count];
    let weights = (0..count).map(|at| weights[at] * scales[at]).collect();
    let scales = scales
        .iter()
        .map(|scale| if *scale > 0.0 { 1.0 / scale } else { 0.0 })
        .collect();
    FittedWeights {
        means,
        scales,
        weights,
        intercept,
    }
}

/// Solves a system of linear equations by elimination.
fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let count = right.len();
    for column in 0..count {
        let Some(pivot) =
            (column..count).max_by(|one, other| matrix[*one][column].abs().total_cmp(&matrix[*other][column].abs()))
        else {
            continue;
        };
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let lead = matrix[column][column];
        if lead.abs() < 1e-12 {
            continue;
        }
        let of_pivot = matrix[column].clone();
        for row in column + 1..count {
            let part = matrix[row][column] / lead;
            for (value, pivot) in matrix[row].iter_mut().zip(&of_pivot) {
                *value -= part * pivot;
            }
            right[row] -= part * right[column];
        }
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let rest: f64 = (row + 1..count).map(|at| matrix[row][at] * solution[at]).sum();
        let lead = matrix[row][row];
        solution[row] = if lead.abs() < 1e-12 {
            0.0
        } else {
            (right[row] - rest) / lead
        };
    }
    solution
}
