// Elementary functions of doubles that have the same bits on every machine: sequences of additions,
// multiplications, divisions and square roots, each rounded as IEEE 754 says. Those of C libraries
// differ in the last bit from system to system. What is written to files is computed by these.
#ifndef KINGLET_KERNELS_PORTABLE_FUNCTIONS_H_
#define KINGLET_KERNELS_PORTABLE_FUNCTIONS_H_

namespace kinglet::portable {

// Largest errors in units of the last place of normal results, as
// tests/kernels/portable_functions_test.cc allows them: Exp 0.57, Log 0.9, Expm1 3, Log1p 2,
// Sigmoid 2.5, Tanh 4, Erfc 8, Hypot 2.
double Exp(double x);
double Log(double x);
double Expm1(double x);  // e^x - 1
double Log1p(double x);  // log(1 + x). REQUIRES: x is finite
double Sigmoid(double x);
double Tanh(double x);
double Erfc(double x);
double Hypot(double x, double y);  // sqrt(x^2 + y^2)

}  // namespace kinglet::portable

#endif  // KINGLET_KERNELS_PORTABLE_FUNCTIONS_H_
