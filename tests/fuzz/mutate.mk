# SPDX-License-Identifier: Apache-2.0
# What tests/fuzz/mutate.py drives: make [SAN=...] mutate
MUTATE := $(B)/mutate/every $(B)/mutate/rings

.PHONY: mutate
mutate: $(B)/opscope $(MUTATE)

$(B)/mutate/%: tests/fuzz/%.c $(TESTLIB) tests/fuzz/mutate.mk
	@echo "test    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(TESTLIB) $(ALL_LDFLAGS) \
	    $(LIBS)

-include $(wildcard $(B)/mutate/*.d)
