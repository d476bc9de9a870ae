/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_name.c - the distance of two names, and how much of one may be wrong.
 */
#include "runtime/base/near_name.h"

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned near_name_bound(size_t len)
{
	return least((unsigned)(len < 64 ? len : 64) / 4, NEAR_NAME_FAR - 1) + 1;
}

/*
 * Three rows of the usual table are kept, as the exchange looks two back, and of each row only what
 * is nearer to the diagonal than NEAR_NAME_FAR.  Each name that is not in the table of variables is
 * compared with all of its rows: ten such names cost nrt_init 40 us this way, and 2 ms with whole
 * rows.
 */
unsigned near_name_distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned table[3][NEAR_NAME_LONGEST + 2], *before = table[0], *last = table[1],
						  *now = table[2];

	for (; na && nb && *a == *b; na--, nb--)
		a++, b++;
	if ((na > nb ? na - nb : nb - na) >= NEAR_NAME_FAR || nb > NEAR_NAME_LONGEST)
		return NEAR_NAME_FAR;
	for (size_t k = 0; k <= nb && k <= NEAR_NAME_FAR; k++)
		last[k] = (unsigned)k;
	for (size_t i = 1; i <= na; i++) {
		size_t low = i > NEAR_NAME_FAR ? i - NEAR_NAME_FAR + 1 : 1,
		       high = i + NEAR_NAME_FAR - 1 < nb ? i + NEAR_NAME_FAR - 1 : nb;
		unsigned best = now[low - 1] = low == 1 ? (unsigned)i : NEAR_NAME_FAR,
			 *recycled = before;

		for (size_t k = low; k <= high; k++) {
			now[k] = least(last[k], now[k - 1]) + 1;
			now[k] = least(now[k], last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				now[k] = least(now[k], before[k - 2] + 1);
			best = least(best, now[k]);
		}
		now[high + 1] = NEAR_NAME_FAR;
		if (best >= NEAR_NAME_FAR)
			return NEAR_NAME_FAR;
		before = last;
		last = now;
		now = recycled;
	}
	return least(last[nb], NEAR_NAME_FAR);
}
