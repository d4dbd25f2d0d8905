# SPDX-License-Identifier: Apache-2.0
# Printed from the tables by `make docs`.
from typing import Any, Literal, Mapping, Optional, Sequence, Union

from .reading import Result

_Texts = Union[str, Sequence[str]]
_Range = Union[int, str, range]

def parameter_of(option: Mapping[str, Any]) -> str: ...
def help_of(table: Mapping[str, Any]) -> str: ...
def option_text(value: object) -> str: ...

class Analyses:
    """What can run() an analysis by its name, and so has a method of each."""
    def info(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """What is in a profile: format, hosts, devices, tracks, spans, steps;
        what was skipped or not recorded.

        A row is one fact about the profile.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def overview(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """One screen: step time, where it goes, memory, what to do first.

        A row is one fact about the run.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def hints(
        self,
        *,
        device_peak: Optional[_Texts] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """What to change first, and how much a step would gain by it.

        A row is one recommendation.

        Options:
          device_peak LIST: peaks of the device:
              bf16=989e12,tf32=495e12,bw=4.8e12
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def steps(
        self,
        *,
        by: Optional[Literal["step", "device", "epoch"]] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """How long each training step took, and where the time went.

        A row is one step of one host.

        Options:
          by step|device|epoch: one row per step, per step and device, or
              per epoch (step)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def idle(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Why each device had nothing to do, from what the host did then.

        A row is one cause of a device's idleness.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def critical(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """The chain of work that made a step as long as it was.

        A row is one op, call or region on the critical path of a step.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def input(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Stages of the input pipeline, and how much the device waited.

        A row is one stage of the input pipeline.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def ops(
        self,
        *,
        group: Optional[_Texts] = ...,
        by: Optional[Literal["job", "rank"]] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Time, calls, memory and FLOPs of each operation.

        A row is one framework operation name.

        Options:
          group LIST: split rows further: shapes, stack, module; a comma
              list
          by job|rank: of several ranks: one row for all of them, or one for
              each (job)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def kernels(
        self,
        *,
        group: Optional[Literal["name", "shape"]] = ...,
        by: Optional[Literal["job", "rank", "class"]] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Time of each device kernel, its launch shape and who launched it.

        A row is one device kernel name.

        Options:
          group name|shape: one row per kernel name, or per name and launch
              shape (name)
          by job|rank|class: of several ranks: one row for all of them, or
              one for each; or one per class of kernels: gemm, attention,
              ... (job)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def launch(
        self,
        *,
        by: Optional[Literal["op", "call"]] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """What launches cost: calls, delay to the device, queue depth.

        A row is one launching operation or call.

        Options:
          by op|call: one row per operation, or per driver call (op)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def copies(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Transfers between host and devices, and fills.

        A row is one kind of transfer.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def roofline(
        self,
        *,
        by: Optional[Literal["op", "kernel"]] = ...,
        device_peak: Optional[_Texts] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """How near each op comes to what the device can do, and what limits
        it.

        A row is one operation or kernel.

        Options:
          by op|kernel: one row per operation, or per device kernel (op)
          device_peak LIST: peaks in FLOP/s and bytes/s instead of the
              table's: bf16=989e12,tf32=494e12,fp32=67e12,bw=4.8e12
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def tree(
        self,
        *,
        by: Optional[Literal["scope", "module", "op", "code"]] = ...,
        scope: Optional[_Texts] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Time and memory of each module, name scope, region or code line.

        A row is one name scope, module or region.

        Options:
          by scope|module|op|code: what the tree is made of: name scopes and
              regions, nn.Modules, operations, lines of Python (default: the
              best there is)
          scope GLOB: only scopes whose path matches, and all inside of them
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def stacks(
        self,
        *,
        by: Optional[Literal["host", "device"]] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Time of each call path, through Python, ops and kernels.

        A row is one call path.

        Options:
          by host|device: which time: that of threads, or that of device
              work, under the calls that launched it (default: device, where
              there is one)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def python(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Time of each Python function, and Python's share of the step.

        A row is one Python function.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def memory(
        self,
        *,
        by: Optional[Literal["allocator", "time", "op", "category", "scope",
            "module", "stack"]] = ...,
        points: Optional[int] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Peak, reserved and live memory of each device, and who holds it.

        A row is one device or allocator.

        Options:
          by allocator|time|op|category|scope|module|stack: who held what at
              the peak, by that; time: the level over time (allocator)
          points N: with --by time: at most so many points for each
              allocator (200)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def allocs(
        self,
        *,
        at: Optional[float] = ...,
        peak: Optional[bool] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Each allocation: who made it, how large, how long it lived.

        A row is one allocation.

        Options:
          at US: only what is live at that time, as JSON or text shows times
          peak: only what is live at each allocator's peak
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def leaks(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """What stays in memory after each step and grows.

        A row is one site that keeps growing.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def segments(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """How the GPU allocator's memory is cut, and where it is lost.

        A row is one segment of a GPU allocator.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def comm(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Collectives between ranks: bytes, bandwidth, waiting, overlap.

        A row is one collective or transfer between ranks.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def ranks(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """The ranks of a job: who waits for whom, and the straggler.

        A row is one rank.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def compile(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """What was compiled or traced in the window, how often and why.

        A row is one thing that was compiled.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def coverage(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """What the profile can and cannot say, why, and how to get it.

        A row is one kind of gap.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def processes(
        self,
        *,
        by: Optional[Literal["process", "thread"]] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Processes and threads seen from outside: CPU, memory, how they
        ended.

        A row is one process (or thread) of a program that opscope record
        ran.

        Options:
          by process|thread: what a row is (process)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def counters(
        self,
        *,
        by: Optional[Literal["counter", "op"]] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """Sampled counters: utilisation, queue lengths, temperatures.

        A row is one sampled counter.

        Options:
          by counter|op: op: a row for each op that launched what was
              counted (counter)
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def tracks(
        self,
        *,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """The threads and streams of a profile, and how busy each was.

        A row is one thread, one thread's Python frames, or one stream.

        Options:
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
    def trace(
        self,
        *,
        from_: Optional[float] = ...,
        to: Optional[float] = ...,
        track: Optional[_Texts] = ...,
        top: Optional[int] = ...,
        sort: Optional[_Texts] = ...,
        columns: Optional[_Texts] = ...,
        name: Optional[_Texts] = ...,
        steps: Optional[_Range] = ...,
        region: Optional[_Texts] = ...,
        instance: Optional[_Range] = ...,
        host: Optional[_Texts] = ...,
        rank: Optional[_Range] = ...,
        min_us: Optional[float] = ...,
        min_bytes: Optional[Union[int, str]] = ...,
    ) -> Result:
        """The raw spans, in order of time.

        A row is one span.

        Options:
          from_ US: only spans that end at or after this: a start as JSON or
              text shows it
          to US: only spans that begin at or before this, likewise
          track T: only tracks whose name matches this glob, or whose id it
              is
          top N: show the first N rows; 0 shows all (text: 20, JSON and CSV:
              all)
          sort COL: order by this column: numbers largest first, texts from
              A on
          columns A,B,...: these columns alone, in this order: names, or
              headings as printed
          name GLOB: only rows whose name matches, such as 'aten::*'
          steps A..B: only these steps, as the program counts them
          region GLOB: only what lies in regions of this name, each a step;
              'outer/inner': one in another
          instance A..B: of --region: only these of its instances, counted
              from 0
          host GLOB: only hosts whose name matches
          rank A..B: only these ranks
          min_us US: only rows of at least so many microseconds
          min_bytes SIZE: only rows of at least so many bytes, such as 1M
        """
