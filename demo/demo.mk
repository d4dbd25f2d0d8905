# SPDX-License-Identifier: Apache-2.0
# demo: a training program that records itself (docs/demo.md). Included by the
# Makefile, which finds its headers' dependencies: make demo
#
#   $(B)/demo/demo     the program
#   $(B)/demo/check    are its gradients right? The same code in double.
#
# Built for the processor that builds it: DEMO_ARCH= for any.

DEMO_ARCH   ?= -march=native
DEMO_SRC    := $(sort $(wildcard demo/*.c))
DEMO_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla $(if $(WERROR),-Werror) -pthread \
	-Iinclude -D_GNU_SOURCE -O3 -g $(DEMO_ARCH) -fno-math-errno \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
DEMO_LDFLAGS := $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN))
DEMO_LIBS   := $(B)/libopscope-record.a -ldl -lm -pthread
DEMO_OBJ    := $(patsubst demo/%.c,$(B)/obj/demo/%.o,\
	$(filter-out demo/check.c,$(DEMO_SRC)))
CHECK_OBJ   := $(patsubst %,$(B)/obj/demo/%.double.o,\
	check custom matrix model ops text)

.PHONY: demo
demo: $(B)/demo/demo $(B)/demo/check

$(B)/demo/demo: $(DEMO_OBJ) $(B)/libopscope-record.a
	@echo "link    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(DEMO_LDFLAGS) -o $@ $(DEMO_OBJ) $(DEMO_LIBS)

$(B)/demo/check: $(CHECK_OBJ) $(B)/libopscope-record.a
	@echo "link    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(DEMO_LDFLAGS) -o $@ $(CHECK_OBJ) $(DEMO_LIBS)

$(B)/obj/demo/%.o: demo/%.c demo/demo.mk
	@echo "compile $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(DEMO_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/obj/demo/%.double.o: demo/%.c demo/demo.mk
	@echo "compile $< (double)"
	@mkdir -p $(@D)
	$(Q)$(CC) $(DEMO_CFLAGS) -DDEMO_REAL=double -MMD -MP -c -o $@ $<
